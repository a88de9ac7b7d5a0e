package object

import (
	"math"
	"testing"
)

// The same seed, load and purpose give the same numbers. Another seed, load or purpose gives other numbers.
func TestDrawsDependOnSeedLoadAndPurposeAlone(t *testing.T) {
	a := newStream(1, "load", "object")
	for name, b := range map[string]stream{"seed": newStream(2, "load", "object"), "load": newStream(1, "other", "object"), "purpose": newStream(1, "load", "verb")} {
		same := 0
		for n := range int64(1000) {
			if a.among(n, 1000) == b.among(n, 1000) {
				same++
			}
		}
		if same > 20 {
			t.Errorf("another %s: %d of 1000 draws are the same", name, same)
		}
	}
	for n := range int64(1000) {
		if i := a.among(n, 7); i != newStream(1, "load", "object").among(n, 7) || i < 0 || i > 6 {
			t.Fatalf("draw %d of 7", i)
		}
	}
}

func TestSharesAreKept(t *testing.T) {
	const draws = 100_000
	s := newStream(5, "load", "x")
	for name, c := range map[string]struct {
		shares shares
		want   []float64
	}{
		"one": {newShares([]float64{3}), []float64{1}}, "weights": {newShares([]float64{6, 1, 0.5, 2.5}), []float64{0.6, 0.1, 0.05, 0.25}},
		"even": {even(4), []float64{0.25, 0.25, 0.25, 0.25}}, "zipf": {zipf(3), []float64{6. / 11, 3. / 11, 2. / 11}},
	} {
		counts := make([]float64, len(c.want))
		for n := range int64(draws) {
			counts[c.shares.pick(s.unit(n))]++
		}
		for i, want := range c.want {
			if got := counts[i] / draws; math.Abs(got-want) > 0.01 {
				t.Errorf("%s: share %d is %.3f, want %.3f", name, i, got, want)
			}
		}
	}
	s2 := newShares([]float64{1, 1})
	for u, want := range map[float64]int{0: 0, 0.499: 0, 0.5: 1, 0.999: 1} {
		if got := s2.pick(u); got != want {
			t.Errorf("half and half: %v is of %d", u, got)
		}
	}
}
