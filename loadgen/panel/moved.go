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

// visible is the part of a panel's height by which a line has to leave what it
// showed before, for a person to see it: a line of text is about as high.
const visible = 0.1

// Motion is whether a panel showed a fault that it is about.
type Motion struct {
	Dashboard, Panel, Fault string
	// By is how far, at the most, a line left the range of its values before the
	// fault: in parts of the panel's height, on a logarithmic axis if it has one.
	By float64
	// Seen tells whether that is far enough, or a line appeared or ended.
	Seen bool
}

func (m Motion) String() string {
	return fmt.Sprintf("%s: %s moved by %.0f%% of its height under %s", m.Dashboard, m.Panel, 100*m.By, m.Fault)
}

// Moved looks at the panels that are about one of the faults. What a line did
// from a fault's begin until a rate has seen its end is held against all that it
// did before the first fault.
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
			if during == nil {
				continue
			}
			by, came := motion(p, series, quiet, during)
			all = append(all, Motion{answers[first].dashboard.UID, p.Title, kind, by, came || by >= visible})
		}
		first = next
	}
	return all, nil
}

// same tells whether two answers are of one panel.
func same(a, b answer) bool {
	return a.dashboard.UID == b.dashboard.UID && a.panel.Title == b.panel.Title
}

// motion is the largest departure of a line from what it was before quiet ended,
// in parts of the panel's height, and whether a line came or went.
func motion(p dashboards.Panel, series []Series, quiet time.Time, during []Mark) (by float64, came bool) {
	height := func(v float64) float64 {
		if p.Log {
			return math.Log10(v) // of nothing: minus infinity, which is dropped below
		}
		return v
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range series {
		for _, pt := range s.Points {
			if h := height(pt.V); !math.IsNaN(h) && !math.IsInf(h, 0) {
				low, high = min(low, h), max(high, h)
			}
		}
	}
	if p.Min != nil && !p.Log {
		low = min(low, *p.Min)
	}
	if p.Max != nil {
		high = max(high, height(*p.Max))
	}
	for _, s := range series {
		least, most := math.Inf(1), math.Inf(-1)
		least2, most2 := math.Inf(1), math.Inf(-1)
		for _, pt := range s.Points {
			h := height(pt.V)
			if math.IsNaN(h) || math.IsInf(h, 0) {
				continue
			}
			switch {
			case pt.T.Before(quiet):
				least, most = min(least, h), max(most, h)
			case slices.ContainsFunc(during, func(m Mark) bool { return !pt.T.Before(m.Begin) && !pt.T.After(m.End) }):
				least2, most2 = min(least2, h), max(most2, h)
			}
		}
		switch {
		case most2 < least2: // nothing while the fault was there
			came = came || most >= least && p.Kind != "heatmap"
		case most < least: // nothing before
			came = came || most2 > 0 || p.Log
		case high > low:
			by = max(by, (most2-most)/(high-low), (least-least2)/(high-low))
		}
	}
	return by, came
}
