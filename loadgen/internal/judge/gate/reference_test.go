package gate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Sources that the head of the page names.
const (
	ours        = "Stormglass' own measurement"
	recoveryDoc = "docs/reference/recovery.md"
	replayDoc   = "docs/reference/replay.md"
)

var update = flag.Bool("update", false, "rewrite docs/reference/objectives.md")

func TestReferenceMatchesObjectives(t *testing.T) {
	file := filepath.Join("..", "..", "..", "..", "docs", "reference", "objectives.md")
	if *update {
		if err := os.WriteFile(file, []byte(reference(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != reference(t) {
		t.Error("docs/reference/objectives.md differs from objectives.yaml; read the changes and run: go test ./loadgen/internal/judge/gate -update")
	}
	for _, o := range Objectives() {
		if o.Doc == "" || o.Source == "" || o.Default == "" || (o.Expr == "") == (o.measure == nil) {
			t.Errorf("%s has no text, source, default or measurement", o.Name)
		}
		limit, bound, ok := strings.Cut(o.Default, ": ")
		var b scenario.Bound
		if err := b.UnmarshalText([]byte(bound)); err != nil || !ok || !b.Fits(o.Unit) || limit != "max" && limit != "min" {
			t.Errorf("%s: the default bound %q does not fit: %v", o.Name, o.Default, err)
		}
	}
	for _, measures := range []map[string]func(evidence) finding{measured(), recovered(), replayed()} {
		for name := range measures {
			if find(name) == nil {
				t.Errorf("%s has a measurement, but is not an objective", name)
			}
		}
	}
	requires := []string{"", "pods", "nodes", "nodeFailure", "fault", "members", "signals", "transitions"}
	gaps := []gapRule{gapEach, gapShared, gapCount, gapCountSeenByAll, gapAgainst}
	for _, o := range Objectives() {
		if !slices.Contains(requires, o.Requires) || !slices.Contains(gaps, o.Gap) || o.Results != "" && scenario.LoadExample(o.Results) == "" {
			t.Errorf("%s has an unknown word: requires %q, gap %q, results %q", o.Name, o.Requires, o.Gap, o.Results)
		}
	}
}

// reference renders docs/reference/objectives.md: testdata/objectives.tmpl with every
// objective, and its unit, bound, definition and source.
func reference(t *testing.T) string {
	t.Helper()
	head, err := os.ReadFile(filepath.Join("testdata", "objectives.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, o := range Objectives() {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", o.Name, o.Doc)
		if o.Unit != "" {
			fmt.Fprintf(&b, "%s, ", o.Unit)
		}
		fmt.Fprintf(&b, "`%s`, ", o.Default)
		switch {
		case len(o.Needs) > 0:
			b.WriteString(strings.Join(o.Needs, ", "))
		case o.Client:
			b.WriteString("client")
		default:
			b.WriteString("generator")
		}
		// The head of the page already names our measurements and the pages on recovery and replays.
		source := strings.NewReplacer(ours+"; ", "", ours, "", recoveryDoc+"; ", "", recoveryDoc, "", replayDoc, "").Replace(o.Source)
		if source != "" {
			fmt.Fprintf(&b, ". Source: %s", source)
		}
		b.WriteString(".\n")
		if o.Expr != "" {
			fmt.Fprintf(&b, "\n```promql\n%s\n```\n", o.Expr)
		}
	}
	return strings.NewReplacer(
		"$objectives", b.String(),
		"$shared", withGap(gapShared), "$each", withGap(gapEach), "$seenByAll", withGap(gapCountSeenByAll),
		"$count", withGap(gapCount), "$against", withGap(gapAgainst),
	).Replace(string(head))
}

// withGap lists the objectives on scraped metrics with a gap rule.
func withGap(rule gapRule) string {
	var all []string
	for _, o := range Objectives() {
		if o.Expr != "" && o.Gap == rule {
			all = append(all, o.Name)
		}
	}
	return strings.Join(all, ", ")
}
