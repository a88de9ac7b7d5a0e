package report

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
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
	section := document.Section{ID: "trend", Title: "Metrics over all runs", Text: cleaned(r.Notes)}
	for _, f := range r.Figures {
		section.Figures = append(section.Figures, trendFigure(r, f))
	}
	return document.Write(w, document.Document{
		Title: terminal.Clean(r.Scenario) + ": trend", Heading: terminal.Clean(r.Scenario), Line: trendSpan(r), Sections: []document.Section{section},
	})
}

// trendFigure returns the chart of a figure: a dot for each run, and a line at each change.
func trendFigure(r result.Trend, f result.TrendFigure) document.Figure {
	const width, height = 100.0, 40.0
	first, last := trendEnds(f)
	most := 0.0
	for _, v := range f.Values {
		if v != nil {
			most = max(most, *v)
		}
	}
	figure := document.Figure{
		Caption: fmt.Sprintf("%s: first %s, last %s (%s is better; axis from 0 to %s)", terminal.Clean(f.Name), formatIn(f.Unit, first), formatIn(f.Unit, last), f.Better, formatIn(f.Unit, &most)),
		Drawing: document.Drawing{Width: width, Height: height, Label: fmt.Sprintf("%s in %d runs, with %d changes", terminal.Clean(f.Name), len(r.Runs), len(f.Changes))},
		Left:    r.Runs[0].Started.UTC().Format("2006-01-02 15:04"), Right: r.Runs[len(r.Runs)-1].Started.UTC().Format("2006-01-02 15:04"),
	}
	x := func(run float64) float64 { return width * (run + 0.5) / float64(len(r.Runs)) }
	for _, c := range f.Changes {
		at := x(float64(c.Run) - 0.5)
		figure.Drawing.Shapes = append(figure.Drawing.Shapes, document.Shape{Class: "change", X: at, X2: at, Y2: height})
		figure.Notes = append(figure.Notes, "from "+trendRun(r, c)+": "+formatIn(f.Unit, &c.Before)+" to "+formatIn(f.Unit, &c.After)+", "+changeText(c))
	}
	for i, v := range f.Values {
		if v != nil && most > 0 {
			run := r.Runs[i]
			figure.Drawing.Shapes = append(figure.Drawing.Shapes, document.Shape{
				Dot: true, X: x(float64(i)), Y: height - (height-2)**v/most,
				Title: run.Started.UTC().Format("2006-01-02 15:04") + ": " + formatIn(f.Unit, v),
			})
		}
	}
	return figure
}
