package testplane

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// judgeMargin is how long before the test's deadline Run ends the run, so that enough time remains to judge it.
const judgeMargin = 20 * time.Second

// Run runs a scenario on the plane and returns its result. file is a path or the name of a built-in scenario. If the
// run does not pass, the test fails with one line for each reason. Run removes the objects that the run created. Each
// function in change may set further options, such as Loads, Actions and Measurements. Scenarios of parallel tests run
// one after another. The run directory, with report.html, is in the test's ArtifactDir; `go test -artifacts` keeps it.
func (p *Plane) Run(t testing.TB, file string, change ...func(*loadgen.Options)) result.Result {
	t.Helper()
	p.mustRun(t)
	s, err := scenario.Read(file, nil)
	if err != nil {
		t.Fatalf("testplane: %v", err)
	}
	o := loadgen.Options{Scenario: s, Plane: p.running.Cluster().Dir, Progress: steps{t}}
	for _, set := range change {
		set(&o)
	}
	if o.Out == "" {
		if o.Out, err = os.MkdirTemp(t.ArtifactDir(), o.Scenario.Name+"-"); err != nil {
			t.Fatalf("testplane: %v", err)
		}
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	ctx, cancel := within(t)
	defer cancel()
	dir, err := loadgen.Run(ctx, o)
	if err != nil {
		t.Fatalf("scenario %s: %v", o.Scenario.Name, err)
	}
	res, err := loadgen.Judge(context.WithoutCancel(ctx), dir)
	if err != nil {
		t.Fatalf("scenario %s: judge %s: %v", o.Scenario.Name, dir, err)
	}
	logResult(t, res)
	return res
}

// within returns a context that ends judgeMargin before the test's deadline. If the test has no deadline, the context ends
// with the test.
func within(t testing.TB) (context.Context, context.CancelFunc) {
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if at, ok := d.Deadline(); ok {
			return context.WithDeadline(t.Context(), at.Add(-judgeMargin))
		}
	}
	return context.WithCancel(t.Context())
}

// logResult logs a result. If the verdict is not pass, it fails the test with the reasons.
func logResult(t testing.TB, res result.Result) {
	t.Helper()
	var text strings.Builder
	if err := report.Terminal(&text, res, report.TerminalOptions{}); err == nil {
		t.Log("\n" + text.String())
	}
	if res.Verdict == result.Pass {
		return
	}
	t.Errorf("scenario %s: %s (`go test -artifacts` keeps its report)", res.Run.Scenario, res.Verdict)
	for _, reason := range res.Reasons {
		t.Errorf("scenario %s: %s", res.Run.Scenario, reason)
	}
}

// steps logs the steps of a run to the test. `go test` shows the log if the test fails.
type steps struct{ t testing.TB }

func (s steps) Step(line string)    { s.t.Log(line) }
func (steps) Live(loadgen.Snapshot) {}
