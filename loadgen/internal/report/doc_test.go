package report

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/schemadoc"
)

// update rewrites golden files and docs/reference/result.md; read the difference before
// committing it.
var update = flag.Bool("update", false, "rewrite golden files and docs/reference/result.md")

// TestResultDoc keeps docs/reference/result.md equal to the Go types and their comments.
func TestResultDoc(t *testing.T) {
	head, err := os.ReadFile("testdata/result.head.md")
	if err != nil {
		t.Fatal(err)
	}
	page := schemadoc.Page{
		File: "../../../docs/reference/result.md", Head: head, Tag: "json",
		Scalars: map[string]string{"Verdict": "string"}, Unit: unitOf,
	}
	// Both packages have a Cluster: of control only what results hold.
	if err := errors.Join(page.Read("../../../controlplane/control", "Deviation"), page.Read("../../result")); err != nil {
		t.Fatal(err)
	}
	page.Check(t, "Result", *update)
}

// unitOf is the unit of a field whose name does not say it.
func unitOf(of, key, text string) string {
	switch {
	case strings.HasSuffix(key, "Seconds"), strings.HasSuffix(key, "PerSecond"):
		return ""
	case of == "Gate" && (key == "value" || key == "bound"):
		return "see `unit`"
	case strings.HasPrefix(of, "Signal") && strings.Contains(text, "number"):
		return map[bool]string{true: "noises", false: "see Signal's `unit`"}[strings.HasSuffix(key, "Noises")]
	}
	return ""
}
