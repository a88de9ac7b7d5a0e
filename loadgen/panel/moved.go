package panel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stormglass/stormglass/dashboards"
)

// Mark is a stretch of a run with a name: a phase, or a fault of that kind.
type Mark struct {
	Name       string
	Begin, End time.Time
}

// visible is the part of a panel's height by which a line has to move, for a
// person to see it: a line of text is about as high.
const visible = 0.1

// Motion is whether a panel showed a fault that it is about.
type Motion struct {
	Dashboard, Panel, Fault string
	// By is how far, at the most, a line moved from what it was before the fault:
	// in parts of the panel's height, on a logarithmic axis if it has one.
	By float64
	// Came tells that a line appeared or ended.
	Came bool
}

// Seen tells whether a person sees it.
func (m Motion) Seen() bool { return m.Came || m.By >= visible }

func (m Motion) String() string {
	if m.Came {
		return fmt.Sprintf("%s: %s: a line appeared or ended under %s", m.Dashboard, m.Panel, m.Fault)
	}
	return fmt.Sprintf("%s: %s moved by %.0f%% of its height under %s", m.Dashboard, m.Panel, 100*m.By, m.Fault)
}

// Moved looks at the panels that are about one of the faults. What a line did
// from a fault's begin until a rate has seen its end is held against all that it
// did before the first fault. A panel without any data is left out.
func Moved(ctx context.Context, src Source, span Span, faults []Mark) ([]Motion, error) {
	if len(faults) == 0 {
		return nil, nil
	}
	step := span.step(mostPoints)
	answers, err := ask(ctx, src, span, step)
	if err != nil {
		return nil, err
	}
	quiet := slices.MinFunc(faults, func(x, y Mark) int { return x.Begin.Compare(y.Begin) }).Begin
	var all []Motion
	for first := 0; first < len(answers); {
		next := first
		var series []Series
		for ; next < len(answers) && same(answers[first], answers[next]); next++ {
			series = append(series, answers[next].series...)
		}
		p := answers[first].panel
		for _, kind := range p.Moves {
			var during []Mark
			for _, f := range faults {
				if f.Name == kind {
					during = append(during, Mark{kind, f.Begin, f.End.Add(span.window(step).Rate)})
				}
			}
			if during == nil || !drawn(series) {
				continue
			}
			by, came := motion(p, series, quiet, during)
			all = append(all, Motion{answers[first].dashboard.UID, p.Title, kind, by, came})
		}
		first = next
	}
	return all, nil
}

// drawn tells whether there is anything to see: Check says why not.
func drawn(series []Series) bool {
	numbers, _ := answer{series: series}.finite()
	return numbers > 0
}

// same tells whether two answers are of one panel.
func same(a, b answer) bool {
	return a.dashboard.UID == b.dashboard.UID && a.panel.Title == b.panel.Title
}

// motion is the largest move of a line, in parts of the panel's height, and
// whether a line came or went. A line moves as far as its middle does (its
// median), or, if that is more, as far as it leaves the range that it had: a
// noisy line that shifts is seen by the first, a short peak by the second.
func motion(p dashboards.Panel, series []Series, quiet time.Time, during []Mark) (by float64, came bool) {
	height := func(v float64) float64 {
		if p.Log {
			return math.Log10(v) // of nothing: minus infinity, which is left out
		}
		return v
	}
	var all []float64
	if p.Min != nil && !p.Log {
		all = append(all, *p.Min)
	}
	if p.Max != nil {
		all = append(all, height(*p.Max))
	}
	type stretches struct{ before, under []float64 }
	var lines []stretches
	for _, s := range series {
		var l stretches
		for _, pt := range s.Points {
			h := height(pt.V)
			if math.IsNaN(h) || math.IsInf(h, 0) {
				continue
			}
			all = append(all, h)
			switch {
			case pt.T.Before(quiet):
				l.before = append(l.before, h)
			case slices.ContainsFunc(during, func(m Mark) bool { return !pt.T.Before(m.Begin) && !pt.T.After(m.End) }):
				l.under = append(l.under, h)
			}
		}
		lines = append(lines, l)
	}
	if len(all) == 0 {
		return 0, false
	}
	whole := slices.Max(all) - slices.Min(all)
	for _, l := range lines {
		switch {
		case l.before == nil || l.under == nil:
			// A line at zero that comes or goes cannot be seen.
			points := slices.Concat(l.before, l.under)
			came = came || len(points) > 0 && (p.Log || slices.Max(points) > 0)
		case whole > 0:
			by = max(by, math.Abs(median(l.under)-median(l.before))/whole,
				(slices.Max(l.under)-slices.Max(l.before))/whole, (slices.Min(l.before)-slices.Min(l.under))/whole)
		}
	}
	return by, came
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
