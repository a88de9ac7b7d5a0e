package recovery

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A load has the bound for lists only if all its requests are lists.
func TestLoadBoundMatchesUpstream(t *testing.T) {
	list, get := scenario.Operation{Verb: "list"}, scenario.Operation{Verb: "get"}
	bound := bounds(&scenario.Scenario{
		Background: []scenario.Load{{Name: "lists", Kind: "requests", Operation: list}, {Name: "registers", Kind: "history"}},
		Phases: []scenario.Phase{{Load: []scenario.Load{
			{Name: "gets", Kind: "requests", Operation: get},
			{Name: "both", Kind: "requests", Mix: []scenario.Operation{list, get}},
			{Name: "only lists", Kind: "requests", Mix: []scenario.Operation{list, list}},
		}}},
	})
	for load, want := range map[string]time.Duration{
		"lists": 30 * time.Second, "only lists": 30 * time.Second,
		"registers": time.Second, "gets": time.Second, "both": time.Second, "unknown": time.Second,
	} {
		if got := bound(load); got != want {
			t.Errorf("the bound of %q is %s, want %s", load, got, want)
		}
	}
}
