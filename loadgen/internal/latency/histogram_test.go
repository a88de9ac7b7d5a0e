package latency

import (
	"math"
	"testing"
	"time"
)

// The quantiles of 1 ms, 2 ms, ... 10 s are known exactly.
func TestQuantilesOfAKnownDistribution(t *testing.T) {
	h := New(time.Minute)
	for ms := 1; ms <= 10_000; ms++ {
		h.Record(time.Duration(ms) * time.Millisecond)
	}
	l := h.Latency()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"p50", l.P50, 5}, {"p90", l.P90, 9}, {"p99", l.P99, 9.9}, {"p99.9", l.P999, 9.99},
		{"max", l.Max, 10}, {"mean", l.Mean, 5.0005},
	} {
		if math.Abs(c.got-c.want) > c.want*0.0011 {
			t.Errorf("%s = %v s, want %v s within 0.1%%", c.name, c.got, c.want)
		}
	}
	if l.Count != 10_000 || l.Clamped != 0 {
		t.Errorf("count %d, clamped %d; want 10000 and 0", l.Count, l.Clamped)
	}
}

func TestValuesPastTheHighestAreClampedAndCounted(t *testing.T) {
	h := New(time.Second)
	h.Record(time.Hour)
	h.Record(-time.Second)
	l := h.Latency()
	if l.Clamped != 1 || l.Count != 2 {
		t.Errorf("clamped %d of %d; want 1 of 2", l.Clamped, l.Count)
	}
	if l.Max != 3600 {
		t.Errorf("max = %v s, want the true 3600 s", l.Max)
	}
	if l.P50 != 0 {
		t.Errorf("p50 = %v s, want the negative value as 0", l.P50)
	}
	if l.P99 < 1 || l.P99 > 1.001 {
		t.Errorf("p99 = %v s, want the highest trackable, 1 s", l.P99)
	}
}

// Zeros count like any other value.
func TestZerosAndOthers(t *testing.T) {
	h := New(time.Minute)
	h.RecordN(0, 900)
	if l := h.Latency(); l.Count != 900 || l.P999 != 0 || l.Max != 0 {
		t.Errorf("zeros alone: %+v", l)
	}
	for ms := 1; ms <= 100; ms++ {
		h.Record(time.Duration(ms) * time.Millisecond)
	}
	for _, c := range []struct {
		q    float64
		want float64 // ms
	}{{0, 0}, {0.5, 0}, {0.9, 0}, {0.901, 1}, {0.95, 50}, {0.99, 90}, {0.999, 99}, {1, 100}} {
		if got := h.quantile(c.q).Seconds() * 1e3; math.Abs(got-c.want) > c.want*0.0011 {
			t.Errorf("quantile %v is %v ms, want %v", c.q, got, c.want)
		}
	}
	if l := h.Latency(); l.Count != 1000 || math.Abs(l.Mean-0.00505) > 1e-9 {
		t.Errorf("count %d, mean %v", l.Count, l.Mean)
	}
}

// A histogram without values above zero allocates no buckets. Once it has buckets, it
// allocates nothing more.
func TestMemory(t *testing.T) {
	each := func(d time.Duration) float64 {
		return testing.AllocsPerRun(10, func() { New(time.Minute).Record(d) })
	}
	if got := each(0); got > 1 {
		t.Errorf("a histogram of zeros took %v allocations", got)
	}
	h := New(time.Minute)
	h.Record(time.Second)
	if got := testing.AllocsPerRun(100, func() { h.Record(time.Millisecond) }); got != 0 {
		t.Errorf("recording took %v allocations", got)
	}
}

func TestTakeForgets(t *testing.T) {
	h := New(time.Second)
	if l := h.Take(); l.Count != 0 || h.quantile(0.99) != 0 {
		t.Errorf("Latency of an empty histogram = %+v", l)
	}
	h.RecordN(10*time.Millisecond, 3)
	if l := h.Take(); l.Count != 3 || l.Max != 0.01 {
		t.Errorf("first window %+v, want 3 values of 10 ms", l)
	}
	if l := h.Latency(); l.Count != 0 || l.Max != 0 {
		t.Errorf("after Take: %+v, want nothing", l)
	}
}

// These are the counts of MLPerf's LoadGen for a p99 at 99% confidence, and the resulting bound.
func TestUpperBoundOfP99(t *testing.T) {
	for n, want := range map[int64]int64{458: -1, 459: 0, 661: 0, 662: 1, 837: 1, 838: 2, 1_000_000: 9768} {
		if over, ok := AllowedOver(n); over != want || ok != (want >= 0) {
			t.Errorf("of %d values %d may be over, want %d", n, over, want)
		}
	}
	h := New(time.Minute)
	for i := range 662 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	if got := h.Latency().P99Upper; got == nil || math.Abs(*got-0.661) > 0.001 {
		t.Errorf("upper bound %v, want the value with one over it", got)
	}
	few := New(time.Minute)
	few.RecordN(time.Second, 458)
	if got := few.Latency().P99Upper; got != nil {
		t.Errorf("bound of 458 values = %v, want none", *got)
	}
}
