package report

import (
	"html"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// If a run did not pass although no metric changed, the summary says so, as the terminal does.
func TestHealthyDiagnosisIsInTheSummary(t *testing.T) {
	r := stormRun()
	r.Diagnosis = &result.Diagnosis{Answer: result.Healthy}
	var markdown, terminal strings.Builder
	if err := Summary(&markdown, r); err != nil {
		t.Fatal(err)
	}
	if err := Terminal(&terminal, r, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"Markdown": markdown.String(), "terminal": terminal.String()} {
		if !strings.Contains(text, nothingMoved) {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}

// A diagnosis that cannot tell gives the reason, and every diagnosis describes the machine and the unexpected exits.
func TestDiagnosisSaysWhatIsNotKnownAndTheFacts(t *testing.T) {
	r := stormRun()
	calm, waited := 0.02, 0.3
	r.Diagnosis = &result.Diagnosis{
		Answer: result.CannotTell, Doubts: []string{"the comparison period of 4s is too short for 3 scrapes at intervals of 5s"},
		Machine: &result.MachineUse{Processors: 2, Others: result.Compared{Calm: &calm, Under: 1.04}, DiskWait: &result.Compared{Under: waited}},
		Exits:   []string{"kube-scheduler-0 exited \x1b\u202ewith code 1 at 14:00:01"},
	}
	var markdown, terminal, alone strings.Builder
	for _, err := range []error{Summary(&markdown, r), Terminal(&terminal, r, TerminalOptions{}), Diagnosis(&alone, *r.Diagnosis, TerminalOptions{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, text := range map[string]string{"Markdown": markdown.String(), "terminal": terminal.String(), "alone": alone.String(), "page": html.UnescapeString(render(t, r, nil))} {
		text = strings.Join(strings.Fields(text), " ")
		for _, want := range []string{"too short for 3 scrapes", "other programs used 1.04 of 2 processors (0.02 in the comparison period)", "for 30% of the time, a process waited for a disk", "without a fault: kube-scheduler-0 exited with code 1 at 14:00:01"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", what, want, text)
			}
		}
	}
	if !strings.Contains(alone.String(), "CANNOT TELL") {
		t.Errorf("%s", alone.String())
	}
	if page := render(t, r, nil); !strings.Contains(page, "No symptom was found, but too little was recorded to call the cluster healthy.") {
		t.Error("the page does not say that the run recorded too little")
	}
}

// Times have their date if the diagnosed time is not within one day.
func TestTimesOfSeveralDaysHaveDates(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }
	d := result.Diagnosis{
		Answer: result.Diagnosed,
		Causes: []result.Cause{
			{Kind: "hang", Title: "a process hangs", Began: at(25, 9), Ended: at(25, 10)},
			{Kind: "killed", Title: "a process ended", Began: at(25, 11)},
		},
		Symptoms: []result.Evidence{{What: "reads", Component: "kube-apiserver-0", Began: at(25, 12)}},
	}
	for _, c := range []struct {
		until time.Time
		want  []string
	}{
		{at(25, 14), []string{"hangs, 09:00:00 to 10:00:00\n", "ended, since 11:00:00\n", " from 12:00:00\n"}},
		{at(26, 14), []string{"hangs, 2026-11-25 09:00:00 to 10:00:00\n", "ended, since 2026-11-25 11:00:00\n", " from 2026-11-25 12:00:00\n"}},
	} {
		d.Under = result.Span{From: at(25, 8), To: c.until}
		var b strings.Builder
		if err := Diagnosis(&b, d, TerminalOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("until %s, %q is missing in\n%s", c.until, want, b.String())
			}
		}
	}
}

// No line is wider than the terminal, however long the names of components are.
func TestDiagnosisFitsTheTerminal(t *testing.T) {
	at := time.Date(2026, 11, 25, 23, 0, 0, 0, time.UTC)
	long := result.Evidence{What: "mean request time, measured by the generator", Component: "kube-apiserver ip-10-0-123-45.eu-central-1.compute.internal:6443", Began: at}
	d := result.Diagnosis{
		Answer: result.Unknown, Calm: result.Span{From: at, To: at.Add(time.Hour)}, Under: result.Span{From: at, To: at.Add(2 * time.Hour)},
		Symptoms: []result.Evidence{long}, Standing: []result.Evidence{long},
	}
	var b strings.Builder
	if err := Diagnosis(&b, d, TerminalOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 81 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}
