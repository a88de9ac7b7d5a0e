package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/schemadoc"
)

// TestScenarioDoc keeps docs/reference/scenarios.md equal to the Go types and their
// comments.
func TestScenarioDoc(t *testing.T) {
	head, err := os.ReadFile("testdata/scenarios.head.md")
	if err != nil {
		t.Fatal(err)
	}
	head = bytes.Replace(head, []byte("{{faults}}\n"), faultKinds(), 1)
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

// faultKinds is a table of the kinds of fault.
func faultKinds() []byte {
	var b bytes.Buffer
	b.WriteString("| kind | of | what it does | fields |\n|---|---|---|---|\n")
	for _, k := range control.FaultTable() {
		of := "the control plane"
		if k.OfNodes {
			of = "simulated nodes"
		}
		var fields []string
		for _, name := range k.Takes {
			format := "`%s`"
			if byDefault := name == "components" && k.OfMembers(); slices.Contains(k.Needs, name) && !byDefault {
				format = "**`%s`**"
			}
			fields = append(fields, fmt.Sprintf(format, name))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, of, k.Short, strings.Join(fields, ", "))
	}
	return b.Bytes()
}
