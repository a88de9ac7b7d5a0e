package network

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// draws returns the first delays of a direction.
func draws(c Condition, stream uint64) []time.Duration {
	l := newLatency(c, stream)
	var all []time.Duration
	for range 1000 {
		all = append(all, l.next())
	}
	return all
}

func TestOneSeedDrawsOneSequence(t *testing.T) {
	c := Condition{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Seed: 7}
	first := draws(c, streamOf("etcd-0 -> etcd-1", 1, false))
	if !slices.Equal(first, draws(c, streamOf("etcd-0 -> etcd-1", 1, false))) {
		t.Error("the same direction has different delays in the second run")
	}
	other := c
	other.Seed = 8
	for what, all := range map[string][]time.Duration{
		"another seed":         draws(other, streamOf("etcd-0 -> etcd-1", 1, false)),
		"the way back":         draws(c, streamOf("etcd-0 -> etcd-1", 1, true)),
		"the next connection":  draws(c, streamOf("etcd-0 -> etcd-1", 2, false)),
		"another link":         draws(c, streamOf("etcd-0 -> etcd-2", 1, false)),
		"the link in reverse":  draws(c, streamOf("etcd-1 -> etcd-0", 1, false)),
		"a seed below nothing": draws(Condition{Delay: c.Delay, Jitter: c.Jitter, Seed: -7}, streamOf("etcd-0 -> etcd-1", 1, false)),
	} {
		if slices.Equal(first, all) {
			t.Errorf("%s has the same delays", what)
		}
	}
	var sum time.Duration
	for _, d := range first {
		sum += d
	}
	if low, high := slices.Min(first), slices.Max(first); low < 15*time.Millisecond || high > 25*time.Millisecond || high-low < 9*time.Millisecond {
		t.Errorf("delays range from %s to %s", low, high)
	}
	if mean := sum / 1000; mean < 19500*time.Microsecond || mean > 20500*time.Microsecond {
		t.Errorf("mean delay = %s, want about 20ms", mean)
	}
}

// The delay of a read counts from the time of that read. Reads at the same time arrive together, and no read overtakes
// another.
func TestDelayCountsFromEachRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := make(chan *stream.StreamChunk, 3), make(chan *stream.StreamChunk)
		start := time.Now()
		go newLatency(Condition{Delay: 100 * time.Microsecond}, 0).Pipe(toxics.NewToxicStub(in, out))
		for _, text := range []string{"a", "b"} {
			in <- &stream.StreamChunk{Data: []byte(text), Timestamp: time.Now()}
		}
		in <- &stream.StreamChunk{Data: []byte("c"), Timestamp: time.Now().Add(50 * time.Microsecond)}
		close(in)
		var got []string
		for chunk := range out {
			got = append(got, string(chunk.Data)+" "+time.Since(start).String())
		}
		if want := []string{"a 100µs", "b 100µs", "c 150µs"}; !slices.Equal(got, want) {
			t.Errorf("arrivals = %q, want %q", got, want)
		}
	})
}
