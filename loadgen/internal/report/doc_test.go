package report

import (
	"errors"
	"flag"
	"testing"

	"github.com/stormglass/stormglass/internal/schemadoc"
)

// update rewrites golden files and docs/reference/result.md; read the difference before committing it.
var update = flag.Bool("update", false, "rewrite golden files and docs/reference/result.md")

// TestResultDoc keeps the page of the JSON results equal to the Go types and their comments.
func TestResultDoc(t *testing.T) {
	page := schemadoc.Page{
		File: "../../../docs/reference/result.md", Tag: "json", Scalars: map[string]string{"Verdict": "string", "Answer": "string", "Statistic": "string"},
		Untyped: []string{"integer", "number", "number or null"},
	}
	// Both packages have a Cluster: from package control take only what results hold.
	if err := errors.Join(page.Read("../../../controlplane/control", "Deviation"), page.Read("../../result")); err != nil {
		t.Fatal(err)
	}
	page.Check(t, *update, "Result", "AB", "Capacity", "CapacityComparison", "Trend")
}
