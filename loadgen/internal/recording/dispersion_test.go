package recording

import (
	"math"
	"testing"
)

func TestDispersionIsVarianceOverMean(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		want   float64
	}{{nil, 0}, {[]int64{0, 0}, 0}, {[]int64{7}, 0}, {[]int64{5, 5, 5}, 0}, {[]int64{0, 10}, 10}, {[]int64{3, 5, 7}, 0.8}} {
		if got := Dispersion(c.counts, len(c.counts)); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("dispersion of %v is %g, want %g", c.counts, got, c.want)
		}
	}
}

// An even recording has no dispersion to compare with. One arrival that moves to the next second must not fail it.
func TestDispersionOfAnEvenRecordingIsComparedWithPoisson(t *testing.T) {
	if got := DispersionError(0, 0.02); got != 0.02 {
		t.Errorf("%g, want 0.02", got)
	}
	if got := DispersionError(10, 9); math.Abs(got-0.1) > 1e-12 {
		t.Errorf("%g, want 0.1", got)
	}
}
