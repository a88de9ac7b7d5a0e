package spans

import (
	"testing"
	"time"
)

// A collector may store the traces of several runs of a scenario, which have the same seed.
func TestIDsDifferBetweenRuns(t *testing.T) {
	a, spanA, _ := NewTracer(Limits{}, 1, 7).Sample()
	b, spanB, _ := NewTracer(Limits{}, 1, 7).Sample()
	if a == b || spanA == spanB {
		t.Errorf("trace %s, span %s in both runs", a, spanA)
	}
}

// A request that ends a while after many others does not settle all of their traces, which would delay its load.
func TestFewTracesAreSettledAtOnce(t *testing.T) {
	tracer := NewTracer(Limits{}, 1, 1)
	now := time.Unix(1000, 0)
	const requests = 1000
	for n := range requests {
		tracer.Ended(request(n, 5, 200), now)
	}
	tracer.Ended(request(requests, 5, 200), now.Add(time.Minute))
	if left := tracer.keeper.settling.Len(); left != requests+1-maxAtOnce {
		t.Errorf("%d traces are left, want %d", left, requests+1-maxAtOnce)
	}
	tracer.Settle(now.Add(time.Minute))
	if left := tracer.keeper.settling.Len(); left != 1 {
		t.Errorf("%d traces are left, want the last", left)
	}
}
