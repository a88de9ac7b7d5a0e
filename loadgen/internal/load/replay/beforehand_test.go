package replay

import (
	"slices"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

func TestObjectsThatAreMadeBeforehand(t *testing.T) {
	type step struct {
		verb, sub string
		code      int
	}
	for name, c := range map[string]struct {
		steps []step
		want  bool
	}{
		"read":                              {[]step{{"get", "", 200}}, true},
		"read, and its answer is not known": {[]step{{"get", "", 0}}, true},
		"not found":                         {[]step{{"get", "", 404}}, false},
		"not found, then created and read":  {[]step{{"get", "", 404}, {"create", "", 201}, {"get", "", 200}}, false},
		"created":                           {[]step{{"create", "", 201}, {"update", "", 200}}, false},
		"created twice":                     {[]step{{"create", "", 409}}, true},
		"updated":                           {[]step{{"update", "", 200}}, true},
		"updated in conflict":               {[]step{{"update", "", 409}}, true},
		"applied for the first time":        {[]step{{"patch", "", 201}, {"patch", "", 200}}, false},
		"status patched":                    {[]step{{"patch", "status", 200}}, true},
		"deleted":                           {[]step{{"delete", "", 200}, {"create", "", 201}}, true},
		"forbidden":                         {[]step{{"get", "", 403}}, false},
		"overloaded, then read":             {[]step{{"get", "", 429}, {"get", "", 200}}, true},
		"evicted":                           {[]step{{"create", "eviction", 201}}, true},
		"watched":                           {[]step{{"watch", "", 200}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var all []recording.Request
			for i, s := range c.steps {
				all = append(all, recording.Request{At: recording.Micros(i), Verb: s.verb, Subresource: s.sub, Resource: "configmaps", Namespace: "x", Name: "o", Code: s.code})
			}
			tr := recordingOf(t, all...)
			if got := Beforehand(tr, Schedule(tr, Options{Speed: 1, Copies: 1}, nil), 1, nil); (len(got) == 1) != c.want {
				t.Errorf("made beforehand: %v, want %v", got, c.want)
			}
		})
	}
}

// If the shift moves a copy's delete past the end of the recording, it comes at the beginning, so the object must exist beforehand.
func TestMadeBeforehandFollowsTheShiftOfACopy(t *testing.T) {
	create := get(100*ms, 0, "o")
	create.Verb, create.Code, create.Size = "create", 201, 77
	remove := get(900*ms, 0, "o")
	remove.Verb = "delete"
	tr := recordingOf(t, create, remove, get(1000*ms, 1, "else"))
	for seed := range int64(20) {
		all := Schedule(tr, Options{Name: "x", Seed: seed, Speed: 1, Copies: 2}, nil)
		i := slices.IndexFunc(all, func(a Arrival) bool { return a.Copy == 1 && a.Entry < 2 })
		first := tr.Shapes[tr.Entries[all[i].Entry].Shape].Verb
		made := slices.Contains(Beforehand(tr, all, 2, nil), Made{Object: 0, Copy: 1, Size: 77})
		if made != (first == "delete") {
			t.Errorf("seed %d: the copy begins with %s, and its object is made beforehand: %v", seed, first, made)
		}
	}
}
