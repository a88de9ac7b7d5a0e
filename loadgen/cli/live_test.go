package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	cdplog "github.com/chromedp/cdproto/log"

	"github.com/stormglass/stormglass/internal/browsertest"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/planetest"
)

const twoPhases = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: two-phases
record: {interval: 1s}
phases:
  - {name: first, for: 10m, load: [{name: patch, kind: requests, verb: patch, rate: 20/s, objects: 5}]}
  - {name: second, for: 10m, load: [{name: get, kind: requests, verb: get, rate: 20/s, objects: 5}]}
gates:
  - {name: mutating-latency, objective: mutating-latency, max: 30s, over: [first]}
`

func twoPhasesFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "two-phases.yaml")
	if err := os.WriteFile(file, []byte(twoPhases), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// livePageState is the state of the live page in a browser.
type livePageState struct {
	Word, Now, Title, Pause string
	Charts                  int
}

const livePageScript = `({
  Word: (document.querySelector('.verdict .word') || {}).textContent || '',
  Now: (document.getElementById('now') || {}).textContent || '',
  Pause: (document.getElementById('pause') || {}).textContent || '',
  Title: document.title,
  Charts: document.querySelectorAll('.plot canvas').length,
})`

// A browser follows a run: charts grow, buttons pause load and end phases, and the report follows the end.
func TestRunInABrowser(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startRun(t, twoPhasesFile(t), "--out", dir, "--web", "--set", "phases.second.for=20s")
	p.awaitLine("live page at ")
	_, url, _ := strings.Cut(p.said[len(p.said)-1], "live page at ")
	url, _, _ = strings.Cut(url, " ")
	ctx := browsertest.Start(t)
	problems := make(chan string, 100)
	if err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			problems <- event.ExceptionDetails.Text
		case *cdplog.EventEntryAdded:
			problems <- event.Entry.Text + " " + event.Entry.URL
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 860), chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	// The page reloads at the end; evaluations during the reload fail.
	look := func() livePageState {
		now, _ := chromedp.Run(ctx, chromedp.Evaluate[livePageState](livePageScript))
		return now
	}
	await := func(what string, met func(livePageState) bool) {
		t.Helper()
		late := time.After(90 * time.Second)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for now := look(); !met(now); now = look() {
			select {
			case <-tick.C:
			case <-late:
				_ = p.cmd.Process.Signal(os.Interrupt) // an error means that it has ended
				p.wait()
				t.Fatalf("%s: %+v\n%s", what, now, strings.Join(p.said, "\n"))
			}
		}
	}
	click := func(id string) {
		t.Helper()
		browsertest.Must(t, ctx, chromedp.Evaluate[bool](`(document.getElementById('`+id+`').click(), true)`))
	}
	await("the first phase with charts", func(s livePageState) bool {
		return s.Word == "RUNNING" && strings.HasPrefix(s.Now, "first ") && s.Charts > 5 && strings.Contains(s.Now, "achieved")
	})
	click("pause")
	await("the pause", func(s livePageState) bool { return s.Word == "PAUSED" && s.Pause == "Resume load" })
	click("pause")
	await("the end of the pause", func(s livePageState) bool { return s.Word == "RUNNING" && s.Pause == "Pause load" })
	click("end-phase")
	await("the second phase", func(s livePageState) bool { return strings.HasPrefix(s.Now, "second ") })
	await("the report", func(s livePageState) bool { return s.Word == "NO DATA" && s.Pause == "" && s.Charts > 5 })
	p.wantExit(exitcode.NoData)
	if r := readResult(t, dir); !r.Measurements.Phases[0].EndedEarly || r.Measurements.Phases[0].PausedSeconds <= 0 || r.Measurements.Phases[1].EndedEarly {
		t.Errorf("phases %+v", r.Measurements.Phases)
	}
	for {
		select {
		case problem := <-problems:
			t.Errorf("the page: %s", problem)
		default:
			return
		}
	}
}

// One line says why a page is not served.
func TestWebRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		"loadgen: --web: 0.0.0.0:8080 is open to the network":                      {"run", "testdata/short.yaml", "--web=0.0.0.0:8080"},
		"loadgen: --web shows only one run, but --variant all starts several runs": {"run", "testdata/short.yaml", "--web", "--variant", "all"},
	} {
		refused(t, args, want)
	}
}
