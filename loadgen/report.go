package loadgen

import (
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/result"
)

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

// WriteComparisonJSON writes a comparison as comparison.json.
func WriteComparisonJSON(w io.Writer, c result.Comparison) error { return report.JSON(w, c) }

// WriteComparisonMarkdown writes a comparison for the summary of a CI job.
func WriteComparisonMarkdown(w io.Writer, c result.Comparison) error {
	return report.ComparisonSummary(w, c)
}

// WriteNodesJSON writes what simulated nodes did.
func WriteNodesJSON(w io.Writer, n result.Nodes) error { return report.JSON(w, n) }
