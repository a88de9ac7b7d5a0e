package result

import (
	"slices"
	"testing"
)

func TestSharesOf404And409AreCompared(t *testing.T) {
	kinds := []ReplayKind{
		{Verb: "get", Resource: "pods", Due: 100, RecordedCodes: map[string]int64{"200": 90, "404": 10}, Codes: map[string]int64{"200": 50, "404": 50, "timeout": 3}},
		{Verb: "update", Resource: "leases.coordination.k8s.io", Due: 100, RecordedCodes: map[string]int64{"200": 100}, Codes: map[string]int64{"200": 99, "409": 1}},
	}
	if s := ShareOf(kinds, 404); s.Recording != 0.05 || s.Replay != 0.25 {
		t.Errorf("404: %+v, want 5%% and 25%%", s)
	}
	got := Replay{Load: "tuesday", Kinds: kinds}.Notes()
	if len(got) != 1 || got[0] != "replay tuesday: 50% of the get pods requests were answered with 404, compared with 10% in the recording" {
		t.Errorf("%q", got)
	}
}

func TestNotesTellWhatIsNotSentAsInTheRecording(t *testing.T) {
	r := Replay{Load: "tuesday", LeftOut: map[string]int64{"streams of pods": 3}, Mapped: map[string]int64{"nodes/status": 7}}
	want := []string{
		"replay tuesday: 3 requests of the recording are not replayed: streams of pods",
		"replay tuesday: 7 writes of nodes/status in the recording go to ConfigMaps",
	}
	if got := r.Notes(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
