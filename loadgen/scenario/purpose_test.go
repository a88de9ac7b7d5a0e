package scenario

import (
	"slices"
	"testing"
)

// Each built-in scenario has exactly one purpose.
func TestPurposes(t *testing.T) {
	var listed []string
	for _, p := range Purposes() {
		if len(p.Names) == 0 {
			t.Errorf("%s has no scenarios", p.Title)
		}
		listed = append(listed, p.Names...)
	}
	slices.Sort(listed)
	if names := Names(); !slices.Equal(listed, names) {
		t.Errorf("the purposes list\n%q\nthe catalogue has\n%q", listed, names)
	}
}
