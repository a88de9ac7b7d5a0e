package scenario

import (
	"errors"
	"os"
	"testing"

	"github.com/stormglass/stormglass/internal/schemadoc"
)

// TestScenarioDoc keeps docs/reference/scenarios.md equal to the Go types and their
// comments.
func TestScenarioDoc(t *testing.T) {
	head, err := os.ReadFile("testdata/scenarios.head.md")
	if err != nil {
		t.Fatal(err)
	}
	page := schemadoc.Page{
		File: "../../docs/reference/scenarios.md", Head: head, Tag: "yaml",
		Scalars: map[string]string{
			"Duration": "duration", "Rate": "rate", "Bytes": "size", "Bound": "bound", "Spread": "spread", "Flags": "map of string",
		},
	}
	if err := errors.Join(page.Read("../../controlplane/control"), page.Read(".")); err != nil {
		t.Fatal(err)
	}
	page.Check(t, "Scenario", *update)
}
