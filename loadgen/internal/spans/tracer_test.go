package spans

import "testing"

// A collector may store the traces of several runs of a scenario, which have the same seed.
func TestIDsDifferBetweenRuns(t *testing.T) {
	a, spanA, _ := NewTracer(Limits{}, 1, 7).Sample()
	b, spanB, _ := NewTracer(Limits{}, 1, 7).Sample()
	if a == b || spanA == spanB {
		t.Errorf("trace %s, span %s in both runs", a, spanA)
	}
}
