package site

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/result"
)

// maxSummaries is the maximum number of scenarios in a summary.
const maxSummaries = 10

// Summary is the Markdown about the latest run of each scenario, for a pull request.
type Summary struct {
	latest   []*runs.Entry
	baseline map[*runs.Entry][]*runs.Entry // runs to compare with, by latest run of a scenario; the newest first
}

// NewSummary returns the summary of the runs in an index. With a baseline, it also compares them with the runs of the
// same scenario and variant in the baseline. It returns an error if there is nothing to show or to compare.
func NewSummary(index, baseline *runs.Index) (s Summary, err error) {
	s.baseline = map[*runs.Entry][]*runs.Entry{}
	for _, e := range judged(index) {
		if len(s.latest) < maxSummaries && !slices.ContainsFunc(s.latest, e.Like) {
			s.latest = append(s.latest, e)
		}
	}
	switch {
	case len(s.latest) == 0:
		return s, exitcode.Usagef("--summary: the directories contain no judged run (`loadgen report DIR` judges a run)")
	case baseline == nil:
		return s, nil
	}
	for _, e := range s.latest {
		for _, b := range judged(baseline) {
			if e.Like(b) && e.ID != b.ID && b.Unfit == "" {
				s.baseline[e] = append(s.baseline[e], b)
			}
		}
	}
	if len(s.baseline) == 0 {
		return s, exitcode.Usagef("--baseline: the directory contains no other run of %s", s.latest[0].Name())
	}
	return s, nil
}

// judged returns the judged runs of an index that belong to no comparison, the newest first.
func judged(index *runs.Index) (all []*runs.Entry) {
	for _, e := range index.Snapshot().Entries {
		if e.Judged() && e.Parent == "" {
			all = append(all, e)
		}
	}
	return all
}

// Write writes the summary.
func (s Summary) Write(w io.Writer) error {
	for _, e := range s.latest {
		var r result.Result
		if err := result.ReadJSON(e.Dir, result.ResultFile, &r); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		if err := report.Summary(w, r); err != nil {
			return err
		}
		if len(s.baseline[e]) == 0 {
			continue
		}
		if _, err := io.WriteString(w, against(e, s.baseline[e])); err != nil {
			return err
		}
	}
	return nil
}

// minChange is the smallest relative change of a value that a summary emphasizes, as in `loadgen ab`.
const minChange = 0.05

// against returns a comparison of a run with the runs of a baseline, as Markdown.
func against(e *runs.Entry, baseline []*runs.Entry) string {
	var b strings.Builder
	span := when(baseline[0])
	if n := len(baseline); n > 1 {
		span = when(baseline[n-1]) + " to " + span
	}
	fmt.Fprintf(&b, "Compared with %s, %s:\n\n| metric | baseline, mean | baseline, range | this run | change |\n|---|---:|---:|---:|---:|\n",
		digits.Count(len(baseline), "baseline run"), span)
	for _, v := range e.Values {
		var values []float64
		for _, o := range baseline {
			if known := o.Of(v.Name); known != nil && known.Value != nil && known.Unit == v.Unit {
				values = append(values, *known.Value)
			}
		}
		if v.Value == nil || len(values) == 0 {
			continue
		}
		amount := func(x float64) string { return markdown.Cell(report.Amount(v.Unit, x)) }
		low, high, mean := slices.Min(values), slices.Max(values), stat.Mean(values, nil)
		change := ""
		if mean != 0 {
			change = digits.Change(*v.Value/mean - 1)
		}
		outside := (*v.Value < low || *v.Value > high) && math.Abs(*v.Value-mean) >= minChange*math.Abs(mean)
		if outside && (*v.Value > mean) == (v.Better == "lower") {
			change = "**worse than all: " + cmp.Or(change, "–") + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s to %s | %s | %s |\n", markdown.Cell(v.Name), amount(mean), amount(low), amount(high), amount(*v.Value), change)
	}
	b.WriteString("\nA single run does not prove a regression; `loadgen ab` does.\n")
	differs := runs.Differences([]*runs.Entry{baseline[0], e})
	if len(differs) == 0 {
		b.WriteString("Versions, settings and host are the same as in the newest baseline run.\n\n")
		return b.String()
	}
	b.WriteString("Different from the newest baseline run:\n\n")
	for _, d := range differs {
		fmt.Fprintf(&b, "- %s: %s → %s\n", markdown.Cell(d.Name), markdown.Cell(cmp.Or(d.Values[0], "–")), markdown.Cell(cmp.Or(d.Values[1], "–")))
	}
	return b.String() + "\n"
}
