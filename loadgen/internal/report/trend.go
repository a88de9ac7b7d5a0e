package report

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Trend writes the history of a scenario's figures (metrics) for a terminal: a line for each figure, then a line for
// each change.
func Trend(w io.Writer, r result.Trend, o TerminalOptions) error {
	t := newTerminal(o)
	t.line(t.paint("head", terminal.Shorten(terminal.Clean(r.Scenario)+"  "+trendSpan(r), t.width)))
	tab := newTable("~METRIC", ">FIRST VALUE", ">LAST VALUE", "CHANGES")
	for _, f := range r.Figures {
		first, last := trendEnds(f)
		tab.add(terminal.Clean(f.Name), formatIn(f.Unit, first), formatIn(f.Unit, last), chart.Count(len(f.Changes)))
		for _, c := range f.Changes {
			tab.add("  from "+trendRun(r, c), formatIn(f.Unit, &c.Before), formatIn(f.Unit, &c.After), changeText(c))
		}
	}
	t.section(tab)
	for _, note := range r.Notes {
		t.wrapped("", note)
	}
	return t.writeTo(w)
}

// Amount formats a value with its unit.
func Amount(unit string, v float64) string { return formatIn(unit, &v) }

func trendSpan(r result.Trend) string {
	first, last := r.Runs[0], r.Runs[len(r.Runs)-1]
	return fmt.Sprintf("%d runs, %s to %s", len(r.Runs), first.Started.UTC().Format("2006-01-02 15:04"), last.Started.UTC().Format("2006-01-02 15:04"))
}

func trendRun(r result.Trend, c result.TrendChange) string {
	run := r.Runs[c.Run]
	return fmt.Sprintf("%s (%s, Stormglass %s, Kubernetes %s)", run.Started.UTC().Format("2006-01-02 15:04"), terminal.Clean(filepath.Base(run.Dir)), terminal.Clean(run.Versions.Stormglass), terminal.Clean(run.Versions.Kubernetes))
}

func changeText(c result.TrendChange) string {
	if c.Before == 0 {
		return fmt.Sprintf("change of the mean, p = %.2g", c.P)
	}
	return fmt.Sprintf("mean %s, p = %.2g", digits.Change(c.After/c.Before-1), c.P)
}

func trendEnds(f result.TrendFigure) (first, last *float64) {
	for _, v := range f.Values {
		if v == nil {
			continue
		}
		if first == nil {
			first = v
		}
		last = v
	}
	return first, last
}
