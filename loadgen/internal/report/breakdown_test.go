package report

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// The slowest calls are on the first screen, no matter when they were in the run.
func TestSlowestSplitsFirst(t *testing.T) {
	r := stormRun()
	r.Breakdown = nil
	for i, mean := range []float64{.005, .005, .005, .005, .2, .005, .3} {
		r.Breakdown = append(r.Breakdown, result.Breakdown{
			Phase: "storm", Load: "x", Verb: "get", Resource: string(rune('a' + i)), ClientMean: mean, Unexplained: mean,
		})
	}
	out := summary(t, r, TerminalOptions{})
	_, out, found := strings.Cut(out, "WHERE THE TIME WENT")
	if !found {
		t.Fatal("the summary lacks the section")
	}
	var calls []string
	for _, l := range strings.Split(out, "\n")[1:4] {
		calls = append(calls, strings.Fields(l)[2])
	}
	if got := strings.Join(calls, " "); got != "g e a" {
		t.Errorf("the calls are %s, want g e a", got)
	}
}

// A run with more loads than a page can show keeps the slowest ones, and says so.
func TestManySplits(t *testing.T) {
	r := stormRun()
	for len(r.Breakdown) < 500 {
		r.Breakdown = append(r.Breakdown, r.Breakdown...)
	}
	r.Breakdown[len(r.Breakdown)-1].ClientMean = 77
	page := render(t, r, recording{result: r})
	if n := strings.Count(page, `class="split"`); n != maxSplits {
		t.Errorf("%d bars", n)
	}
	for _, want := range []string{" with the highest mean latency", "<b>1m 17s</b>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	r.Breakdown = nil
	if page = render(t, r, recording{result: r}); strings.Contains(page, "Where the time went") {
		t.Error("the page has a heading without content")
	}
}

// Operations of one verb and resource are distinguished everywhere.
func TestVariantsAreTold(t *testing.T) {
	r := stormRun()
	q, b := &r.Measurements.Phases[1].Requests[0], &r.Breakdown[0]
	q.Verb, q.Resource, q.Variant, q.Tenant = "list", "pods", "rv=0 limit=500", "blue"
	b.Verb, b.Resource, b.Variant, b.Tenant = "list", "pods", "table", "green"
	page := render(t, r, recording{result: r})
	for _, want := range []string{"list pods (rv=0 limit=500) as blue", "list pods (table) as green"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A negative part has no width, and its figure is still shown.
func TestNegativePartIsShown(t *testing.T) {
	b := result.Breakdown{
		Verb: "get", Resource: "pods", ClientMean: .010, Unexplained: .004,
		Parts: []result.BreakdownPart{{Name: result.PartLag, Seconds: .008}, {Name: result.PartWire, Seconds: -.002}},
	}
	v := newSplitView(b)
	if len(v.Pieces) != 3 {
		t.Fatalf("pieces: %+v", v.Pieces)
	}
	lag, wire, rest := v.Pieces[0], v.Pieces[1], v.Pieces[2]
	if lag.Width != "666.7" || rest.X != "666.7" || rest.Width != "333.3" || wire.Width != "" || wire.Value != "-2 ms" || wire.Share != "-20%" {
		t.Errorf("pieces: %+v", v.Pieces)
	}
}

// If several loads of a phase send the same call, its rows in the terminal name the load; other rows do not.
func TestLoadsOfOneCallAreNamed(t *testing.T) {
	r := stormRun()
	r.Breakdown = []result.Breakdown{
		{Phase: "update", Load: "news", Verb: "patch", Resource: "configmaps", ClientMean: .05},
		{Phase: "update", Load: "patch-configmap", Verb: "patch", Resource: "configmaps", ClientMean: .04},
		{Phase: "steady", Load: "news", Verb: "patch", Resource: "configmaps", ClientMean: .03},
	}
	out := summary(t, r, TerminalOptions{Width: 120})
	for _, want := range []string{"update patch configmaps (news) ", "update patch configmaps (patch-configmap) ", "steady patch configmaps  "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
