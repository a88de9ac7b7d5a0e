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

// ABSide is one side of an A/B comparison: a scenario and its control plane.
type ABSide = ab.Side

// ABOptions are the options of an A/B comparison. A, B, Plan and Progress are required.
type ABOptions struct {
	A, B ABSide
	Plan result.Plan
	// Gated names the figures that decide the answer. Empty means the figures whose calibrated spread is small enough.
	Gated []string
	// Overrides are the path=value settings of both sides.
	Overrides []string
	// Out is the directory of the comparison, which must be new or empty; "" means runs/TIME-NAME-ab. Resume is the
	// directory of a comparison to continue.
	Out, Resume string
	// ControlPlane is the controlplane binary for each side that does not name its own.
	ControlPlane string
	// Fuse applies to each run. If it ends a run early, the comparison ends. The parts of Fuse that protect a user's
	// cluster have no effect.
	Fuse     Fuse
	Progress Progress
	// Hurry is the same as Options.Hurry.
	Hurry <-chan struct{}
}

// DefaultPlan returns the default plan by which pairs are judged.
func DefaultPlan() result.Plan { return paired.Default() }

// NewABSide parses the specs of a side, in the syntax of the flag --a, and reads the side's scenario with read. sets are
// the settings that apply to both sides.
func NewABSide(ctx context.Context, flag string, specs, sets []string, read func(sets []string) (*scenario.Scenario, error)) (ABSide, error) {
	return ab.NewSide(ctx, flag, specs, sets, read)
}

// AB runs pairs of A and B until they show whether B is worse. It returns the comparison and its directory. If it
// returns an error, nothing was compared.
func AB(ctx context.Context, o ABOptions) (c result.AB, dir string, err error) {
	return ab.Run(ctx, o.internal())
}

// ABDryRun performs the checks of AB and returns what its runs would create and send. It creates nothing.
func ABDryRun(ctx context.Context, o ABOptions) (ABPreview, error) {
	return ab.DryRun(ctx, o.internal())
}

func (o ABOptions) internal() ab.Options {
	of := Options{Scenario: o.A.Scenario, Overrides: o.Overrides, Out: o.Out, ControlPlane: o.ControlPlane, Progress: o.Progress, Hurry: o.Hurry, Fuse: o.Fuse}
	return ab.Options{Options: of.internal(), A: o.A, B: o.B, Plan: o.Plan, Gated: o.Gated, Resume: o.Resume}
}

// WriteABText writes an A/B comparison for a terminal.
func WriteABText(w io.Writer, c result.AB, o TextOptions) error { return report.AB(w, c, o) }

// WriteABMarkdown writes an A/B comparison for a pull request.
func WriteABMarkdown(w io.Writer, c result.AB) error { return report.ABSummary(w, c) }

// CompareRuns compares two sets of recorded runs. Each set is a run's directory or a directory that contains runs.
func CompareRuns(ctx context.Context, plan result.Plan, gated []string, a, b string) (result.AB, error) {
	return ab.Compare(ctx, plan, gated, a, b)
}

// WriteAB writes a comparison of recorded runs into a new directory: ab.json, ab.html and junit.xml.
func WriteAB(out string, c result.AB) (dir string, err error) { return ab.Write(out, c) }

// SaveBaseline saves the results of runs in a baseline's directory and returns the number of saved runs.
func SaveBaseline(ctx context.Context, dir string, from []string) (int, error) {
	return ab.SaveBaseline(ctx, dir, from)
}

// Baseline is an entry in a list of baselines. BaselineRun is the data that a baseline keeps about a run.
type (
	Baseline    = ab.Baseline
	BaselineRun = ab.BaselineRun
)

// Baselines lists the baselines in dir.
func Baselines(ctx context.Context, dir string) ([]Baseline, error) { return ab.Baselines(ctx, dir) }

// WriteBaselines writes one line per baseline.
func WriteBaselines(w io.Writer, all []Baseline) error { return ab.WriteBaselines(w, all) }

// ReadBaseline reads the runs of a baseline.
func ReadBaseline(ctx context.Context, dir string) ([]BaselineRun, error) {
	return ab.ReadBaseline(ctx, dir)
}

// WriteBaseline writes the figures of a baseline's runs.
func WriteBaseline(w io.Writer, runs []BaselineRun) error { return ab.WriteBaseline(w, runs) }

// Trend finds changes of figures over the recorded runs in dirs.
func Trend(ctx context.Context, dirs []string) (result.Trend, error) { return ab.Trend(ctx, dirs) }

// WriteTrendText writes a trend for a terminal.
func WriteTrendText(w io.Writer, t result.Trend, o TextOptions) error { return report.Trend(w, t, o) }

// WriteTrendHTML writes a trend as an HTML page.
func WriteTrendHTML(w io.Writer, t result.Trend) error { return report.TrendHTML(w, t) }
