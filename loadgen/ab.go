package loadgen

import (
	"context"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ABSide is one side of an A/B comparison: a scenario, and the control plane that it runs on.
type ABSide = ab.Side

// ABOptions of an A/B comparison. A, B, Plan and Progress are needed.
type ABOptions struct {
	A, B ABSide
	Plan result.Plan
	// Gated names the figures that decide; empty: those whose calibrated spread allows it.
	Gated []string
	// Overrides are the path=value settings of both sides.
	Overrides []string
	// Out is the comparison's directory, new or empty; empty means runs/TIME-NAME-ab. Resume is the directory of
	// one to go on with.
	Out, Resume string
	// ControlPlane is the binary of a side that names none.
	ControlPlane string
	// Fuse of each run; a run that it ends early ends the comparison. What guards a user's cluster does not apply.
	Fuse     Fuse
	Progress Progress
	// Hurry is as in Options.
	Hurry <-chan struct{}
}

// DefaultPlan returns the plan that pairs are judged by unless a flag changes it.
func DefaultPlan() result.Plan { return paired.Default() }

// NewABSide reads what a side is, from specs as --a takes them, and its scenario by read.
func NewABSide(ctx context.Context, flag string, specs, sets []string, read func(sets []string) (*scenario.Scenario, error)) (ABSide, error) {
	return ab.NewSide(ctx, flag, specs, sets, read)
}

// AB runs pairs of A and B until they tell whether B is worse, and returns the comparison and its directory. An error
// means that nothing was compared.
func AB(ctx context.Context, o ABOptions) (c result.AB, dir string, err error) {
	return ab.Run(ctx, o.internal())
}

// ABDryRun makes the checks of AB and returns what its runs would make and send. It makes nothing.
func ABDryRun(ctx context.Context, o ABOptions) (ABPreview, error) {
	return ab.DryRun(ctx, o.internal())
}

func (o ABOptions) internal() ab.Options {
	of := Options{Scenario: o.A.Scenario, Overrides: o.Overrides, Out: o.Out, ControlPlane: o.ControlPlane, Progress: o.Progress, Hurry: o.Hurry, Fuse: o.Fuse}
	return ab.Options{Options: of.internal(), A: o.A, B: o.B, Plan: o.Plan, Gated: o.Gated, Resume: o.Resume}
}

// WriteABText writes an A/B comparison for a terminal.
func WriteABText(w io.Writer, c result.AB, o TextOptions) error { return report.AB(w, c, o) }

// WriteABMarkdown writes an A/B comparison for the page of a pull request.
func WriteABMarkdown(w io.Writer, c result.AB) error { return report.ABSummary(w, c) }

// CompareRuns compares two sets of recorded runs, each the directory of a run or one with such directories in it.
func CompareRuns(ctx context.Context, plan result.Plan, gated []string, a, b string) (result.AB, error) {
	return ab.Compare(ctx, plan, gated, a, b)
}

// WriteAB writes a comparison of recorded runs into a new directory: ab.json, ab.html and junit.xml.
func WriteAB(out string, c result.AB) (dir string, err error) { return ab.Write(out, c) }

// SaveBaseline saves the results of runs in a baseline's directory and returns how many.
func SaveBaseline(ctx context.Context, dir string, from []string) (int, error) {
	return ab.SaveBaseline(ctx, dir, from)
}

// Baseline is a baseline among others, BaselineRun what one keeps of a run.
type (
	Baseline    = ab.Baseline
	BaselineRun = ab.BaselineRun
)

// Baselines lists the baselines in dir.
func Baselines(ctx context.Context, dir string) ([]Baseline, error) { return ab.Baselines(ctx, dir) }

// WriteBaselines writes a line for each baseline.
func WriteBaselines(w io.Writer, all []Baseline) error { return ab.WriteBaselines(w, all) }

// ReadBaseline reads the runs of a baseline.
func ReadBaseline(ctx context.Context, dir string) ([]BaselineRun, error) {
	return ab.ReadBaseline(ctx, dir)
}

// WriteBaseline writes the figures of the runs of a baseline.
func WriteBaseline(w io.Writer, runs []BaselineRun) error { return ab.WriteBaseline(w, runs) }

// Trend finds where figures changed over the recorded runs in dirs.
func Trend(ctx context.Context, dirs []string) (result.Trend, error) { return ab.Trend(ctx, dirs) }

// WriteTrendText writes a trend for a terminal.
func WriteTrendText(w io.Writer, t result.Trend, o TextOptions) error { return report.Trend(w, t, o) }

// WriteTrendHTML writes a trend as a page.
func WriteTrendHTML(w io.Writer, t result.Trend) error { return report.TrendHTML(w, t) }
