package compare

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const twoVariants = `phases: [{name: p, for: 1s}]
variants:
  - {name: slow, description: as it was}
  - {name: quick, set: {controlPlane.scheduler.qps: 500, phases.p.for: 2s}}
gates: [{name: length, objective: phase-duration, max: 1m}]
compare: [{name: length, objective: phase-duration}]
`

// recordedVariant writes the directory of a variant that ran for the given seconds.
func recordedVariant(t *testing.T, dir string, s *scenario.Scenario, seconds float64) {
	t.Helper()
	text, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000).UTC()
	end := now.Add(time.Duration(seconds * float64(time.Second)))
	if err := errors.Join(
		os.Mkdir(dir, 0o700),
		rundir.WriteFile(filepath.Join(dir, result.ScenarioFile), text),
		rundir.WriteJSON(dir, result.RunFile, result.Run{Started: now, Ended: end, Variant: s.Variant}),
		rundir.WriteJSON(dir, result.MeasurementsFile, result.Measurements{Phases: []result.Phase{{Name: "p", Start: now, End: end}}}),
	); err != nil {
		t.Fatal(err)
	}
}

// A comparison can be reported from its directory, even if it was killed before its last
// variant.
func TestComparisonIsReportedFromItsDirectory(t *testing.T) {
	s := parseVariants(t, twoVariants)
	dir := t.TempDir()
	if err := writeComparison(dir, newComparison(s, time.Now().UTC())); err != nil {
		t.Fatal(err)
	}
	recordedVariant(t, filepath.Join(dir, "slow"), s.AllVariants()[0], 10)
	c, err := Compare(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	quick := c.Variants[1]
	if quick.NotRun != "this variant did not run, because the comparison ended early" || quick.Verdict != result.NoData || strings.Join(quick.Set, " ") != "controlPlane.scheduler.qps=500 phases.p.for=2s" {
		t.Errorf("quick is %+v", quick)
	}
	if r := c.Rows; len(r) != 1 || *r[0].Values[0].Value != 10 || r[0].Values[1].Value != nil || r[0].Values[1].Detail != "the variant did not run" || r[0].Values[1].Ratio != nil {
		t.Errorf("rows %+v", r)
	}
	if c.ExitCode != exitcode.NoData {
		t.Errorf("exit code %d", c.ExitCode)
	}

	recordedVariant(t, filepath.Join(dir, "quick"), s.AllVariants()[1], 4)
	if c, err = Compare(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if r := c.Rows[0]; *r.Values[1].Value != 4 || *r.Values[1].Ratio != 0.4 || r.Values[0].Ratio != nil || c.Variants[1].NotRun != "" {
		t.Errorf("rows %+v, quick %+v", r, c.Variants[1])
	}
	page, err := os.ReadFile(filepath.Join(dir, result.ComparisonHTMLFile))
	if err != nil || !strings.Contains(string(page), `href="quick/report.html"`) {
		t.Errorf("the page does not link the variants' reports (%v)", err)
	}
}

func TestWorstExitCodeIsReturned(t *testing.T) {
	for _, c := range []struct{ a, b, want int }{
		{0, 3, 3}, {3, 1, 1}, {1, 3, 1}, {1, 4, 4}, {4, 2, 4}, {2, 1, 2}, {0, 0, 0},
	} {
		if got := worse(c.a, c.b); got != c.want {
			t.Errorf("worse of exit codes %d and %d = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// Invalid variants are refused before any file is written.
func TestInvalidVariantsAreRefusedBeforeStart(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct {
		o    run.Options
		want string
	}{
		"no variants":    {run.Options{Scenario: parseVariants(t, "phases: [{name: p, for: 1s}]")}, "--variant all: scenario mine has no variants"},
		"user's cluster": {run.Options{Scenario: parseVariants(t, twoVariants), Kubeconfig: cluster.Kubeconfig{Files: "theirs"}}, "mine.yaml:7: variants.quick.set: variant quick sets controlPlane.scheduler.qps"},
	} {
		c.o.Progress = quietly{}
		_, dir, err := Run(t.Context(), c.o)
		if exitcode.Of(err) != exitcode.Usage || dir != "" || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %q, exit code %d: %v", name, dir, exitcode.Of(err), err)
		}
	}
	// An interrupt before the first variant leaves no files either.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, dir, err := Run(ctx, run.Options{Scenario: parseVariants(t, twoVariants), ControlPlane: "controlplane", Progress: quietly{}})
	if dir != "" || exitcode.Of(err) != exitcode.NoData {
		t.Errorf("%q, exit code %d: %v", dir, exitcode.Of(err), err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// quietly discards the progress of a run.
type quietly struct{}

func (quietly) Step(string)       {}
func (quietly) Live(run.Snapshot) {}

func parseVariants(t *testing.T, body string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("mine.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: mine\n"+body), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The last log lines of a component, which an error has on separate lines, are not part
// of a note.
