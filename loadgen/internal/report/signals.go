package report

import (
	"cmp"
	"slices"

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
		c := chart{
			Title: clean(s.Name), Tells: "The scenario's own metric, as it was sampled: " + clean(s.Expr), Unit: scenario.Unit(s.Unit),
			Dips: s.Moved != nil && s.Extreme < s.Steady.Mean, Guide: s.Steady.Mean, GuideText: "steady mean",
		}
		var lines []line
		if points := pointsOf(s); len(points) > 0 {
			l := newLine(clean(s.Name), a.grid.sample(points, c.Dips))
			l.Figure = format(c.Unit, l.peak)
			if c.Dips {
				l.Figure = format(c.Unit, lastOf(l.Values))
			}
			lines = []line{l}
		}
		chart := a.plot(c, lines)
		switch {
		case len(lines) == 0:
			chart.Missing = cmp.Or(clean(s.Detail), "It was not sampled.")
		case s.Moved != nil:
			chart.Note = "Moved by " + noises(s) + "; returned: " + cmp.Or(returned(s), none) + "."
		}
		chart.ID = chartID(slug("signal " + s.Name))
		d.Charts = append(d.Charts, chart)
	}
	return d, len(d.Charts) > 0
}

// pointsOf are a signal's samples in the order of time.
func pointsOf(s result.Signal) []Point {
	windows := []result.SignalWindow{s.Steady, s.Under}
	if s.After != nil {
		windows = append(windows, *s.After)
	}
	var all []Point
	for _, w := range windows {
		for _, p := range w.Points {
			all = append(all, Point{T: p.Time, V: p.Value})
		}
	}
	slices.SortStableFunc(all, func(x, y Point) int { return x.T.Compare(y.T) })
	return all
}
