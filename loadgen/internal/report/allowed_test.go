package report

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Each form of the result distinguishes a rule that a run this short cannot judge, and a rule that may have no data, from rules
// whose lack of data matters.
func TestLackOfDataIsToldApart(t *testing.T) {
	silent := func(name string, verdict result.Verdict, short, allowed bool) result.Gate {
		return result.Gate{
			Name: name, Objective: alertObjective, Over: []string{"calm"}, Verdict: verdict, Op: "<=", Unit: "count",
			Detail: "of " + name, TooShort: short, Allowed: allowed,
		}
	}
	r := floodRun()
	r.Gates = []result.Gate{
		silent("Held", result.NoData, true, true), silent("Later", result.NoData, true, false),
		silent("Unseen", result.NoData, false, false), silent("Quiet", result.Pass, false, false),
	}
	r.Gates[3].Value = new(float64)
	r.Verdict, r.ExitCode = result.NoData, 3
	r.Reasons = []string{"Unseen: no data: of Unseen", "Later: no data: of Later"}
	var text, markdown, junit strings.Builder
	for _, err := range []error{Terminal(&text, r, TerminalOptions{}), Summary(&markdown, r), JUnit(&junit, r)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const headline = "2 of 4 gates without data, run too short for 1, no data allowed for 1"
	last := -1
	for _, want := range []string{headline, "NO DATA    Unseen", "TOO SHORT  Later", "ALLOWED    Held", "PASS  Quiet"} {
		at := strings.Index(text.String(), want)
		if at < last || at < 0 {
			t.Errorf("no %q, or in another order:\n%s", want, text.String())
		}
		last = at
	}
	for _, want := range []string{headline, "| **no data** | Unseen |", "| **too short** | Later |", "| no data, allowed | Held |"} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("no %q:\n%s", want, markdown.String())
		}
	}
	root := checkJUnit(t, junit.String())
	if root.children[0].attrs["skipped"] != "1" || root.attrs["errors"] != "2" || !strings.Contains(junit.String(), `<skipped message="no data, which is allowed: of Held">`) {
		t.Errorf("JUnit:\n%s", junit.String())
	}
	r.Gates = r.Gates[:1:1]
	r.Gates = append(r.Gates, silent("Quiet", result.Pass, false, false))
	r.Gates[1].Value = new(float64)
	r.Verdict, r.ExitCode, r.Reasons = result.Pass, 0, nil
	text.Reset()
	if err := Terminal(&text, r, TerminalOptions{}); err != nil || !strings.Contains(text.String(), "1 of 2 gates passed, no data allowed for 1") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}
