package replay

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A replay traces the replayed requests, but not its preparation.
func TestReplayIsTraced(t *testing.T) {
	s := newStub(t)
	s.tracer = spans.NewTracer(spans.Limits{Sample: 100}, 1, 1)
	var all []recording.Request
	for n := range 10 {
		r := one("get", "configmaps", "settings", 200)
		r.At = recording.Micros(n)
		all = append(all, r)
	}
	got, _ := replayed(t, s, recordingOf(t, all...), func(*scenario.Load) {})
	parents := map[string]bool{}
	for _, r := range got {
		parents[r.parent] = true
	}
	s.tracer.Flush()
	kept, counts := s.tracer.Kept()
	if counts.Requests != 10 || len(kept) != 10 || len(parents) != 10 {
		t.Errorf("%d traced requests, %d kept, %d different headers traceparent; want 10 each", counts.Requests, len(kept), len(parents))
	}
	for i := range kept {
		if k := &kept[i].Request; !parents[spans.Parent(k.Trace, k.ID)] || k.Load != "tuesday" || k.Verb != "get" {
			t.Errorf("%+v was not received", k)
		}
	}
}
