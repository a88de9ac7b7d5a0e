package replay

import (
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
		t.Errorf("got group %d without any due request", of)
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
