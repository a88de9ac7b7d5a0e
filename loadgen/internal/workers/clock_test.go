package workers

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The error of compareClocks is at most the reported uncertainty, however the network delays each direction.
func TestOffsetIsWithinItsUncertainty(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	for range 1000 {
		offset := time.Duration(draw.Int64N(int64(10*time.Millisecond))) - 5*time.Millisecond
		var all []exchange
		now := time.Unix(1000, 0)
		fastest := time.Hour
		for range exchanges {
			there, back := time.Duration(draw.Int64N(int64(3*time.Millisecond))), time.Duration(draw.Int64N(int64(3*time.Millisecond)))
			e := exchange{asked: now, theirs: now.Add(there + offset), answered: now.Add(there + back)}
			fastest = min(fastest, there+back)
			all = append(all, e)
			now = e.answered
		}
		c := compareClocks(all)
		if wrong := (c.Offset - offset).Abs(); wrong > c.Uncertainty || c.Uncertainty != fastest/2 {
			t.Fatalf("offset %v, measured %+v, fastest exchange %v: the error exceeds the uncertainty, or the uncertainty is not half of the exchange", offset, c, fastest)
		}
		if at := c.here(c.there(now)); !at.Equal(now) {
			t.Fatalf("there and here converted %v to %v", now, at)
		}
	}
}

func TestClocksApartAreRefused(t *testing.T) {
	for offset, want := range map[time.Duration]string{
		6 * time.Millisecond: "6ms ahead", -time.Second: "1s behind", 5 * time.Millisecond: "", -5 * time.Millisecond: "",
	} {
		err := clock{Offset: offset}.check()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "synchronise")) {
			t.Errorf("%v: %v", offset, err)
		}
	}
}
