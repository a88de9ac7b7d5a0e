package loadgen

import (
	"context"
	"errors"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/alertproof"
	"github.com/stormglass/stormglass/loadgen/internal/compare"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Chart is one chart of a report.
type Chart = report.Picture

// Judge judges the run in dir by its own gates and writes result.json, junit.xml and
// report.html. A damaged file is no data, which the result says; an error means that
// nothing could be judged or written.
func Judge(ctx context.Context, dir string) (result.Result, error) { return judge.Judge(ctx, dir) }

// JudgeBy judges the run in dir by files of gates or of Prometheus' rules, and writes
// nothing. Alerts of rules must not fire in any phase, except those that a gate names. The
// lack of data of the gates and alerts of noDataAllowed counts for nothing, unless all of
// them lack it; the result says which these are.
func JudgeBy(ctx context.Context, dir string, files []string, noDataAllowed ...string) (result.Result, error) {
	return judge.By(ctx, dir, files, noDataAllowed...)
}

// IsComparison reports whether dir holds the runs of several variants.
func IsComparison(dir string) bool { return rundir.IsComparison(dir) }

// Compare judges the variants in dir again, compares them and writes comparison.json,
// comparison.html and what Judge writes. An error means that nothing was compared.
func Compare(ctx context.Context, dir string) (result.Comparison, error) {
	return compare.Compare(ctx, dir)
}

// Wrap breaks words into lines of at most width characters, as reports do.
func Wrap(text string, width int) []string { return chart.Wrap(text, width) }

// Charts returns the charts of the report of the run in dir.
func Charts(ctx context.Context, dir string) ([]Chart, error) { return judge.Pictures(ctx, dir) }

// ChartByName returns one chart of the run in dir. An error: there is none of that
// name, or it has nothing to show.
func ChartByName(ctx context.Context, dir, name string) (Chart, error) {
	return judge.Picture(ctx, dir, name)
}

// Timeline returns the events of the run in dir, which may be under way.
func Timeline(dir string) ([]result.Event, error) { return timeline.Read(dir) }

// PanelCheck holds the answer of a run's archive to one query of a dashboard.
type PanelCheck = panel.Checked

// CheckPanels asks every query of every dashboard of the archive of the run in dir.
func CheckPanels(ctx context.Context, dir string) (all []PanelCheck, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	run, err := panel.Recorded(rec)
	if err != nil {
		return nil, err
	}
	return panel.Check(ctx, rec.Archive, run.Span)
}

// TextOptions of reports for a terminal.
type TextOptions = report.TerminalOptions

// WriteText writes a result for a terminal.
func WriteText(w io.Writer, r result.Result, o TextOptions) error { return report.Terminal(w, r, o) }

// WriteJSON writes a result as result.json.
func WriteJSON(w io.Writer, r result.Result) error { return report.JSON(w, r) }

// WriteJUnit writes a result as JUnit XML, a test case for each gate.
func WriteJUnit(w io.Writer, r result.Result) error { return report.JUnit(w, r) }

// WriteMarkdown writes a result for the summary of a CI job.
func WriteMarkdown(w io.Writer, r result.Result) error { return report.Summary(w, r) }

// WriteComparisonText writes a comparison for a terminal.
func WriteComparisonText(w io.Writer, c result.Comparison, o TextOptions) error {
	return report.Comparison(w, c, o)
}

// WriteComparisonMarkdown writes a comparison for the summary of a CI job.
func WriteComparisonMarkdown(w io.Writer, c result.Comparison) error {
	return report.ComparisonSummary(w, c)
}

type (
	// Proof is a scenario and what it must do to the alerts.
	Proof = alertproof.Proof
	// ProofStall stops the generator's process for part of each second of a phase.
	ProofStall = alertproof.Stall
	// JudgedProof is one proof, judged.
	JudgedProof = alertproof.Judged
	// ProofReport sums up judged proofs.
	ProofReport = alertproof.Report
)

// SelectProofs returns the proofs of these names, or of these alerts; all where both
// are empty.
func SelectProofs(names, rules []string) ([]Proof, error) { return alertproof.Select(names, rules) }

// Prove judges the run in dir by the proofs that its scenario is for. It writes
// nothing.
func Prove(ctx context.Context, dir string) ([]JudgedProof, error) { return alertproof.Prove(ctx, dir) }

// NotRun is a proof without a run, for the reason why.
func NotRun(p Proof, why error) JudgedProof { return alertproof.NotRun(p, why) }

// NewProofReport sums up proofs; the alerts of wanted must be proven.
func NewProofReport(all []JudgedProof, wanted []string) ProofReport {
	return alertproof.NewReport(all, wanted)
}

// WriteProofs writes a report of proofs for a terminal.
func WriteProofs(w io.Writer, r ProofReport) error { return alertproof.Text(w, r) }

// WriteProofsMarkdown writes a report of proofs for the summary of a CI job.
func WriteProofsMarkdown(w io.Writer, r ProofReport) error { return alertproof.Markdown(w, r) }
