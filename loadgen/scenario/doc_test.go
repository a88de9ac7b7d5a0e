package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/schemadoc"
)

// TestScenarioDoc keeps docs/reference/scenarios.md equal to the Go types and their
// comments.
func TestScenarioDoc(t *testing.T) {
	page := schemadoc.Page{
		File: "../../docs/reference/scenarios.md", Intro: faultKinds(), Tag: "yaml", Documented: true, Untyped: []string{"string"},
		Scalars: map[string]string{
			"Duration": "duration", "Rate": "rate", "Bytes": "size", "Bound": "bound", "Spread": "spread", "Flags": "map of string",
		},
	}
	if err := errors.Join(page.Read("../../controlplane/control"), page.Read(".")); err != nil {
		t.Fatal(err)
	}
	page.Check(t, *update, "Scenario")
}

// faultKinds lists the kinds of fault with their fields. The faults of the control plane have
// a separate page.
func faultKinds() []byte {
	var b bytes.Buffer
	b.WriteString("\n## Kinds of fault\n\nRequired fields are bold. All kinds also take `after`. Kinds before `nodeFailure` also take `repeat` and `every`, except `upgrade` and `downgrade`. `component: X` is short for `components: [X]`. [Faults](faults.md#the-kinds) describes the kinds that have no description here.\n\n")
	for _, k := range control.FaultTable() {
		var fields []string
		for _, name := range k.Takes {
			format := "`%s`"
			if byDefault := name == "components" && k.OfMembers(); slices.Contains(k.Needs, name) && !byDefault {
				format = "**`%s`**"
			}
			fields = append(fields, fmt.Sprintf(format, name))
		}
		fmt.Fprintf(&b, "- `%s`: %s", k.Name, cmp.Or(strings.Join(fields, ", "), "no fields"))
		if k.OfNodes {
			fmt.Fprintf(&b, ". %s", k.Short)
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}
