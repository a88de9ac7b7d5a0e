package loadgen

import (
	"context"
	"errors"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/alertproof"
	"github.com/stormglass/stormglass/loadgen/internal/compare"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Chart is one chart of a report.
type Chart = report.Picture

// Judge judges the run in dir by the gates of its scenario, and writes result.json, junit.xml and report.html. Gates
// that need a damaged file have no data, and the result reports the damage. Judge returns an error if it could not judge
// the run or could not write the files.
func Judge(ctx context.Context, dir string) (result.Result, error) { return judge.Judge(ctx, dir) }

// JudgeBy judges the run in dir by files of gates or of Prometheus rules, and writes
// nothing. Alerts of rules must not fire in any phase, except alerts that a gate names. Missing
// data of the gates and alerts in noDataAllowed is ignored, unless all of them lack data. The
// result says where it was ignored.
func JudgeBy(ctx context.Context, dir string, files []string, noDataAllowed ...string) (result.Result, error) {
	return judge.By(ctx, dir, files, noDataAllowed...)
}

// IsComparison reports whether dir is the directory of a comparison of variants.
func IsComparison(dir string) bool { return rundir.IsComparison(dir) }

// Compare judges the variants in dir again and compares them. It writes comparison.json, comparison.html and, for each
// variant, the files that Judge writes. If it returns an error, nothing was compared.
func Compare(ctx context.Context, dir string) (result.Comparison, error) {
	return compare.Compare(ctx, dir)
}

// Charts returns the charts of the report of the run in dir.
func Charts(ctx context.Context, dir string) ([]Chart, error) { return judge.Pictures(ctx, dir) }

// ChartByName returns one chart of the run in dir. It returns an error if the chart
// does not exist or is empty.
func ChartByName(ctx context.Context, dir, name string) (Chart, error) {
	return judge.Picture(ctx, dir, name)
}

// Timeline returns the events of the run in dir, which may still be active.
func Timeline(dir string) ([]result.Event, error) { return timeline.Read(dir) }

// PanelCheck is the result of one dashboard query on the archive of a run.
type PanelCheck = panel.Checked

// CheckPanels evaluates every query of every dashboard against the archive of the run in dir.
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

// TextOptions are the options of reports for a terminal.
type TextOptions = report.TerminalOptions

// WriteText writes a result for a terminal.
func WriteText(w io.Writer, r result.Result, o TextOptions) error { return report.Terminal(w, r, o) }

// WriteJSON writes a result as result.json.
func WriteJSON(w io.Writer, r result.Result) error { return report.JSON(w, r) }

// WriteJUnit writes a result as JUnit XML, with a test case per gate.
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
	// Proof is a scenario and its required effect on the alerts.
	Proof = alertproof.Proof
	// ProofStall describes how to stop the generator's process for part of each second of a phase.
	ProofStall = alertproof.Stall
	// JudgedProof is one judged proof.
	JudgedProof = alertproof.Judged
	// ProofReport summarizes judged proofs.
	ProofReport = alertproof.Report
)

// SelectProofs returns the proofs with the given names or for the given alerts. If both lists are empty, it returns all
// proofs.
func SelectProofs(names, rules []string) ([]Proof, error) { return alertproof.Select(names, rules) }

// Prove judges the run in dir by the proofs that use its scenario. It writes no files.
func Prove(ctx context.Context, dir string) ([]JudgedProof, error) { return alertproof.Prove(ctx, dir) }

// NotRun returns the result for a proof that was not run. why is the reason.
func NotRun(p Proof, why error) JudgedProof { return alertproof.NotRun(p, why) }

// NewProofReport summarizes judged proofs. All alerts in wanted must be proven.
func NewProofReport(all []JudgedProof, wanted []string) ProofReport {
	return alertproof.NewReport(all, wanted)
}

// WriteProofs writes a report of proofs for a terminal.
func WriteProofs(w io.Writer, r ProofReport) error { return alertproof.Text(w, r) }

// WriteProofsMarkdown writes a report of proofs for the summary of a CI job.
func WriteProofsMarkdown(w io.Writer, r ProofReport) error { return alertproof.Markdown(w, r) }
