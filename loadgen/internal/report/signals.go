package report

import (
	"cmp"
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// signalsTitle is the heading of the scenario's signals.
const signalsTitle = "Signals"

// signalSection draws the scenario's signals as they were sampled in the phases
// that they are judged by, with the steady mean that they are held against.
func (a *artist) signalSection() (drawnSection, bool) {
	d := drawnSection{Title: signalsTitle}
	for _, s := range a.result.Signals {
		c := chart.Chart{
			ID: chart.ID(chart.Slug("signal " + s.Name)), Title: chart.Clean(s.Name), Tells: "The scenario's own metric, as it was sampled: " + chart.Clean(s.Expr),
			Unit: scenario.Unit(s.Unit), Dips: s.Moved != nil && s.Extreme < s.Steady.Mean, Level: s.Steady.Mean, LevelText: "steady mean",
		}
		points := pointsOf(s)
		if len(points) > 0 {
			l := chart.NewLine(chart.Clean(s.Name), a.grid.Sample(points, c.Dips))
			l.SetFigure(c.Unit, c.Dips)
			c.Draw([]chart.Line{l}, a.grid, a.when)
		}
		switch {
		case len(points) == 0:
			c.Missing = cmp.Or(chart.Clean(s.Detail), "It was not sampled.")
		case s.Moved != nil:
			c.Note = "Moved by " + noises(s) + "; returned: " + cmp.Or(returned(s), chart.None) + "."
		}
		d.Charts = append(d.Charts, c)
	}
	return d, len(d.Charts) > 0
}

// pointsOf are a signal's samples in the order of time.
func pointsOf(s result.Signal) []chart.Point {
	windows := []result.SignalWindow{s.Steady, s.Under}
	if s.After != nil {
		windows = append(windows, *s.After)
	}
	var all []chart.Point
	for _, w := range windows {
		for _, p := range w.Points {
			all = append(all, chart.Point{T: p.Time, V: p.Value})
		}
	}
	slices.SortStableFunc(all, func(x, y chart.Point) int { return x.T.Compare(y.T) })
	return all
}
