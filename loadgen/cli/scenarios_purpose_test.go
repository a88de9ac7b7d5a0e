package cli

import (
	"slices"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Each built-in scenario has exactly one purpose.
func TestPurposes(t *testing.T) {
	var listed []string
	for _, p := range byPurpose() {
		if len(p.names) == 0 {
			t.Errorf("%s has no scenarios", p.title)
		}
		listed = append(listed, p.names...)
	}
	slices.Sort(listed)
	if names := scenario.Names(); !slices.Equal(listed, names) {
		t.Errorf("the purposes list\n%q\nthe catalogue has\n%q", listed, names)
	}
}
