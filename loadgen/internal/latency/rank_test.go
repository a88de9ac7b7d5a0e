package latency

import (
	"testing"
	"time"
)

// The rank is the ceiling of q*n for quantiles with three decimals, although floating-point products are inexact.
func TestRankIsTheCeiling(t *testing.T) {
	for n := range int64(3000) {
		for permille := int64(1); permille <= 1000; permille += 7 {
			if got, want := Rank(float64(permille)/1000, n), (permille*n+999)/1000; got != want {
				t.Fatalf("q %d/1000 of %d values has rank %d, want %d", permille, n, got, want)
			}
		}
	}
	for n, want := range map[int64]int64{0: 0, 1: 1, 51: 51, 99: 99, 100: 99, 101: 100, 1_000_000_000: 990_000_000, 1_000_000_001: 990_000_001} {
		if got := Rank(0.99, n); got != want {
			t.Errorf("the p99 of %d values has rank %d, want %d", n, got, want)
		}
	}
	if got := Rank(0, 5); got != 1 {
		t.Errorf("the smallest of 5 values has rank %d", got)
	}
}

// With this number of values, a quantile is not the maximum. With one value less, it is.
func TestNeedsIsTheLeastNumberThatLeavesOneOut(t *testing.T) {
	for q, want := range map[float64]int64{0.5: 2, 0.9: 10, 0.95: 20, 0.99: 100, 0.999: 1000, 0.9999: 10000} {
		if got := Needs(q); got != want || Rank(q, got) == got || Rank(q, got-1) != got-1 {
			t.Errorf("quantile %v needs %d, want %d; ranks %d and %d", q, got, want, Rank(q, got), Rank(q, got-1))
		}
	}
	if got := Needs(1); got != 0 {
		t.Errorf("a maximum needs %d", got)
	}
}

// At most the fraction 1-q of the values exceeds the q-quantile.
func TestQuantileLeavesNoMoreThanItsShareAbove(t *testing.T) {
	for _, n := range []int64{1, 2, 19, 51, 60, 99, 100, 101, 150, 199, 200, 500, 999, 1000} {
		h := New(time.Minute)
		for i := range n {
			h.Record(time.Duration(i+1) * time.Millisecond)
		}
		for q, got := range map[float64]float64{0.5: h.Latency().P50, 0.9: h.Latency().P90, 0.95: h.Latency().P95, 0.99: h.Latency().P99, 0.999: h.Latency().P999} {
			if above := h.CountOver(time.Duration(got * float64(time.Second))); above > n-Rank(q, n) {
				t.Errorf("%d of %d values are over the quantile %v", above, n, q)
			}
		}
	}
	h := New(time.Minute)
	h.RecordN(2*time.Millisecond, 59)
	h.Record(time.Second)
	if l := h.Latency(); l.P99 < 0.999 || l.P95 > 0.003 {
		t.Errorf("of 60 values with one slow: p95 %v, p99 %v", l.P95, l.P99)
	}
}
