package replay

import (
	"math"
	"testing"
	"time"
)

func TestRateErrorIsThatOfTheWorstGroup(t *testing.T) {
	if worst, of := rateError([]count{{100, 100}, {0, 0}, {50, 48}, {1000, 995}}); worst != 0.04 || of != 2 {
		t.Errorf("%g of group %d, want 0.04 of 2", worst, of)
	}
	if worst, of := rateError([]count{{7, 7}}); worst != 0 || of != 0 {
		t.Errorf("%g of group %d without a difference, want 0 of 0", worst, of)
	}
	if _, of := rateError([]count{{0, 0}}); of != -1 {
		t.Errorf("group %d of nothing due", of)
	}
}

func TestDispersionIsVarianceOverMean(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		want   float64
	}{{nil, 0}, {[]int64{0, 0}, 0}, {[]int64{7}, 0}, {[]int64{5, 5, 5}, 0}, {[]int64{0, 10}, 10}, {[]int64{3, 5, 7}, 0.8}} {
		if got := dispersion(c.counts); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("dispersion of %v is %g, want %g", c.counts, got, c.want)
		}
	}
}

// An even trace has no dispersion to compare with. One arrival that moves to the next second must not fail it.
func TestDispersionOfAnEvenTraceIsComparedWithPoisson(t *testing.T) {
	if got := dispersionError(0, 0.02); got != 0.02 {
		t.Errorf("%g, want 0.02", got)
	}
	if got := dispersionError(10, 9); math.Abs(got-0.1) > 1e-12 {
		t.Errorf("%g, want 0.1", got)
	}
}

func TestBinsCountBySecond(t *testing.T) {
	var b bins
	for _, at := range []time.Duration{0, time.Second - 1, time.Second, 2500 * time.Millisecond} {
		b.add(at)
	}
	if got := b.whole(2); len(got) != 2 || got[0] != 2 || got[1] != 1 {
		t.Errorf("%v, want [2 1]", got)
	}
	if got := b.whole(4); got[2] != 1 || got[3] != 0 {
		t.Errorf("%v, want [2 1 1 0]", got)
	}
}
