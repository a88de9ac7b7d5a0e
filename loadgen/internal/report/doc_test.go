package report

import (
	"errors"
	"flag"
	"testing"

	"github.com/stormglass/stormglass/internal/schemadoc"
)

// update rewrites golden files and the pages of JSON in docs/reference; read the difference before
// committing it.
var update = flag.Bool("update", false, "rewrite golden files and the pages of JSON in docs/reference")

// TestResultDoc keeps the pages of JSON equal to the Go types and their comments.
func TestResultDoc(t *testing.T) {
	for file, root := range map[string]string{"result": "Result", "ab-json": "AB", "capacity-json": "Capacity", "capacity-comparison-json": "CapacityComparison", "trend-json": "Trend"} {
		page := schemadoc.Page{
			File: "../../../docs/reference/" + file + ".md", Tag: "json", Scalars: map[string]string{"Verdict": "string", "Answer": "string"},
			Untyped: []string{"integer", "number", "number or null"},
		}
		// Both packages have a Cluster: from package control take only what results hold.
		if err := errors.Join(page.Read("../../../controlplane/control", "Deviation"), page.Read("../../result")); err != nil {
			t.Fatal(err)
		}
		page.Check(t, root, *update)
	}
}
