package latency

import (
	"testing"
	"time"
)

// With 90 values of a second and 10 open values, the p90 is known and the p99 is not.
func TestOpenValuesAreLongerThanAllOthers(t *testing.T) {
	h := New(time.Minute)
	h.RecordN(time.Second, 90)
	l := h.WithOpen(10)
	if l.Count != 100 || l.Clamped != 10 || l.P90 < 0.999 || l.P90 > 1.001 || l.P99 != l.Max || l.Max != 1 || l.Mean != 1 {
		t.Errorf("%+v", l)
	}
	so := h.With([]time.Duration{10 * time.Second, 20 * time.Second})
	if so.Count != 92 || so.Max != 20 || so.P50 > 1.001 || so.P99 < 9.9 {
		t.Errorf("%+v", so)
	}
	if again := h.Latency(); again.Count != 90 || again.Max != 1 {
		t.Errorf("the histogram itself has changed: %+v", again)
	}
	if none := New(time.Minute).WithOpen(3); none.Count != 3 || none.Clamped != 3 || none.Max != 0 {
		t.Errorf("of open values alone: %+v", none)
	}
}
