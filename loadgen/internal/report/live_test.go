package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// livePage is the page of half of the made-up storm.
func livePage(t *testing.T, l Live) string {
	t.Helper()
	r := stormRun()
	r.Run.Ended, r.Measurements.Phases = at(170), r.Measurements.Phases[:3]
	r.Measurements.Phases[2].End, r.Measurements.Phases[2].Requests = at(170), nil
	l.Gates, r.Gates = r.Gates, nil
	for i := range l.Gates {
		l.Gates[i].Value, l.Gates[i].Detail, l.Gates[i].Expr = nil, "", ""
	}
	var b bytes.Buffer
	if err := LiveHTML(t.Context(), &b, r, events(r), nil, nil, recording{result: r}, l); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLivePageHasNoVerdict(t *testing.T) {
	page := livePage(t, Live{Word: "running", Headline: "Phase storm is running."})
	for _, want := range []string{
		"RUNNING", "Phase storm is running.", ">PENDING<", "Requests by verb", `id="pause"`, "connect-src 'self'", "location.reload", "when the run has ended",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{">PASS<", ">FAIL<", "Exit code", "Where the time went", "This page sends no requests"} {
		if strings.Contains(page, not) {
			t.Errorf("the page of an active run has %q", not)
		}
	}
	starting := livePage(t, Live{Word: "running", Headline: "Getting ready.", Starting: true})
	if strings.Contains(starting, "Requests by verb") || !strings.Contains(starting, `id="pause"`) {
		t.Error("before the first phase the page has charts, or no buttons")
	}
}

// A report sends no request.
func TestReportHasNoLiveScript(t *testing.T) {
	r := stormRun()
	page := render(t, r, recording{result: r})
	for _, not := range []string{"connect-src", "location.reload", `id="pause"`} {
		if strings.Contains(page, not) {
			t.Errorf("the report has %q", not)
		}
	}
}

// A user's change to a phase is shown next to its name.
func TestSteeredPhasesAreMarked(t *testing.T) {
	for want, p := range map[string]result.Phase{
		" (ended early)":         {Name: "p", EndedEarly: true, Until: "podsReady"},
		" (load paused for 8 s)": {Name: "p", PausedSeconds: 8},
	} {
		if got := phaseNote(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
