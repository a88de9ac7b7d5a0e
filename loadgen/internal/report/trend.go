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

// TrendHTML writes the history as an HTML page, with a chart for each figure and a vertical line at each change.
func TrendHTML(w io.Writer, r result.Trend) error {
	page := struct {
		result.Trend
		Span string
		Rows []trendRow
	}{Trend: r, Span: trendSpan(r)}
	for _, f := range r.Figures {
		page.Rows = append(page.Rows, newTrendRow(r, f))
	}
	return writePage(w, "trend.tmpl", page)
}

// trendRow is a figure with its chart. Positions are in percent of the chart's width and height.
type trendRow struct {
	result.TrendFigure
	First, Last, Most string
	Dots              [][2]float64
	Lines             []float64
	Texts             []string
}

func newTrendRow(r result.Trend, f result.TrendFigure) trendRow {
	row := trendRow{TrendFigure: f}
	first, last := trendEnds(f)
	row.First, row.Last = formatIn(f.Unit, first), formatIn(f.Unit, last)
	most := 0.0
	for _, v := range f.Values {
		if v != nil {
			most = max(most, *v)
		}
	}
	row.Most = formatIn(f.Unit, &most)
	x := func(run float64) float64 { return 100 * (run + 0.5) / float64(len(r.Runs)) }
	for i, v := range f.Values {
		if v != nil && most > 0 {
			row.Dots = append(row.Dots, [2]float64{x(float64(i)), 40 - 38**v/most})
		}
	}
	for _, c := range f.Changes {
		row.Lines = append(row.Lines, x(float64(c.Run)-0.5))
		row.Texts = append(row.Texts, "from "+trendRun(r, c)+": "+formatIn(f.Unit, &c.Before)+" to "+formatIn(f.Unit, &c.After)+", "+changeText(c))
	}
	return row
}
