package panel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// Mark is a named stretch of a run: a phase, or a fault of that kind.
type Mark struct {
	Name       string
	Begin, End time.Time
}

const (
	// visible is the part of a panel's height by which a line must move to be visible: about
	// the height of a line of text.
	visible = 0.1
	// surely is how often a value under a cause must be over (or under) one from before it:
	// Mann and Whitney's U, divided by the number of pairs. In healthy runs, at moments
	// without any cause, 5 to 15% of panels move this much (see Calm). With a rule that only
	// required a highest value 10% above all values before, it was 30%.
	surely = 0.9
	// flat is the part of the height within which a line counts as at rest, so that a
	// short peak is seen like a step.
	flat = 0.02
)

// Motion is a panel's reaction to a cause that it is about.
type Motion struct {
	Dashboard, Panel, Claim string
	// By is how far the line that shows the cause best moved: from its middle before
	// to its middle under the cause, or to its peak if it was at rest. It is a share
	// of the panel's height, on a logarithmic axis if the panel has one.
	By float64
	// Surely is the share of pairs of a value under the cause and a value before it that
	// differ in that direction, from 0.5 to 1.
	Surely float64
	// Came says that a line appeared where no line, or no moving line, was before.
	Came bool
	// Seen reports whether a person would see the motion.
	Seen bool
}

func (m Motion) String() string {
	if m.Came {
		return fmt.Sprintf("%s: %s: a line appeared under %s", m.Dashboard, m.Panel, m.Claim)
	}
	return fmt.Sprintf("%s: %s moved by %.0f%% of its height under %s, beyond what it was %.0f%% of the time",
		m.Dashboard, m.Panel, 100*m.By, m.Claim, 100*m.Surely)
}

// Moved examines the panels that are about one of the run's causes. Their lines at rest
// are those before the first fault. It leaves out causes that begin with the run, because
// nothing is before them, and panels without any data, which Check reports.
func Moved(ctx context.Context, src chart.Source, run Run) ([]Motion, error) {
	if len(run.Causes) == 0 {
		return nil, nil
	}
	step := run.step(mostPoints)
	answers, err := ask(ctx, src, run.Span, step)
	if err != nil {
		return nil, err
	}
	var all []Motion
	for _, drawn := range byPanel(answers) {
		p := drawn[0].panel
		for _, claim := range p.Moves {
			w, ok := watched(run, step, claim)
			if !ok {
				continue
			}
			if m, ok := w.motion(p, drawn); ok {
				m.Dashboard, m.Panel, m.Claim = drawn[0].dashboard.UID, p.Title, claim
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// byPanel divides answers by their panel.
func byPanel(answers []answer) [][]answer {
	var all [][]answer
	for first := 0; first < len(answers); {
		next := first + 1
		for next < len(answers) && same(answers[first], answers[next]) {
			next++
		}
		all = append(all, answers[first:next])
		first = next
	}
	return all
}

func same(a, b answer) bool {
	return a.dashboard.UID == b.dashboard.UID && a.panel.Title == b.panel.Title
}

// windows are the times at which a claim is examined.
type windows struct {
	artist
	before Mark
	// under is from each cause's begin until a rate no longer sees it; core is the part in
	// which a rate sees nothing else. If a cause is shorter than two ranges of a rate, core is
	// under without a scrape interval at each end.
	under, core []Mark
}

// watched returns the windows of a claim, if the run has such a cause and some time before
// it and before the first fault. Of that time it takes the part from the last phase on,
// without the first rates, which include the phase before. If that is shorter than the
// range of a rate, it begins one or more phases earlier, up to the run's start.
func watched(run Run, step time.Duration, claim string) (windows, bool) {
	rate := run.window(step).Rate
	w := windows{artist: artist{span: run.Span, step: step, points: run.points(step)}}
	w.before = Mark{Begin: run.Start, End: run.End}
	for _, c := range run.Causes {
		if own := c.is(claim); own || !c.Load {
			if c.Begin.Before(w.before.End) {
				w.before.End = c.Begin
			}
			if !own {
				continue
			}
			w.under = append(w.under, Mark{"", c.Begin, c.End.Add(rate)})
			core := Mark{"", c.Begin.Add(rate), c.End}
			if c.End.Sub(c.Begin) < 2*rate {
				core = Mark{"", c.Begin.Add(run.Scrape), c.End.Add(rate - run.Scrape)}
			}
			w.core = append(w.core, core)
		}
	}
	for _, p := range append([]Mark{{Begin: run.Start}}, run.Phases...) {
		if from := p.Begin.Add(rate); w.before.End.Sub(from) > rate {
			w.before.Begin = from
		}
	}
	return w, w.under != nil && w.before.End.Sub(w.before.Begin) > step
}

// stretches is a line of a panel, in parts of its height, at the times of each window.
type stretches struct{ before, under, core []float64 }

// motion finds the line that shows a cause best. It returns false if no line has a value.
func (w windows) motion(p dashboards.Panel, answers []answer) (Motion, bool) {
	lines, any := w.heights(p, answers)
	if !any {
		return Motion{}, false
	}
	var rest []float64 // of all lines
	for _, l := range lines {
		rest = append(rest, l.before...)
	}
	best := Motion{Surely: 0.5}
	better := func(m Motion) {
		if m.Seen && !best.Seen || m.Seen == best.Seen && m.By > best.By {
			best = m
		}
	}
	for _, l := range lines {
		switch {
		case len(l.under) == 0:
		case len(l.before) > 0:
			if len(l.core) > 0 {
				by, sure := math.Abs(median(l.core)-median(l.before)), beyond(l.core, l.before)
				better(Motion{By: by, Surely: sure, Seen: by >= visible-1e-9 && sure >= surely})
			}
			if by := excursion(l.before, l.under); !p.Log && spread(l.before) <= flat && by >= visible {
				better(Motion{By: by, Surely: beyond(l.under, l.before), Seen: true})
			}
		case rest == nil && p.Log, !p.Log && spread(rest) <= flat && slices.Max(l.under) >= visible+slices.Max(append(rest, 0)):
			better(Motion{By: slices.Max(l.under), Surely: 1, Came: true, Seen: true})
		}
	}
	return best, true
}

// heights returns the lines of a panel as drawn, and whether there are any.
func (w windows) heights(p dashboards.Panel, answers []answer) (lines []stretches, any bool) {
	var values [][]float64
	for _, a := range answers {
		for _, s := range a.series {
			if l := chart.NewLine("", w.sample(s.Points)); l.PeakAt >= 0 {
				values = append(values, l.Values)
			}
		}
	}
	drawn := values
	if p.Stacked {
		drawn = stack(values)
	}
	axis := newAxis(p, drawn)
	for _, line := range values {
		var l stretches
		for i, v := range line {
			if math.IsNaN(v) || p.Log && v <= 0 {
				continue
			}
			h, at := axis.Share(v), w.span.Start.Add(time.Duration(i)*w.step)
			if !at.Before(w.before.Begin) && at.Before(w.before.End) {
				l.before = append(l.before, h)
			}
			if within(at, w.under) {
				l.under = append(l.under, h)
			}
			if within(at, w.core) {
				l.core = append(l.core, h)
			}
		}
		lines = append(lines, l)
	}
	return lines, len(values) > 0
}

func within(at time.Time, marks []Mark) bool {
	return slices.ContainsFunc(marks, func(m Mark) bool { return !at.Before(m.Begin) && !at.After(m.End) })
}

// beyond is the share of pairs in which a value is over one from before, or under it,
// whichever is larger. A pair of equal values counts half for both.
func beyond(values, before []float64) float64 {
	over := 0.0
	for _, v := range values {
		for _, b := range before {
			switch {
			case v > b+1e-9:
				over++
			case v > b-1e-9:
				over += 0.5
			}
		}
	}
	share := over / float64(len(values)*len(before))
	return max(share, 1-share)
}

// excursion returns how far values leave the range of the values before.
func excursion(before, values []float64) float64 {
	return max(slices.Max(values)-slices.Max(before), slices.Min(before)-slices.Min(values))
}

// spread returns the distance from the lowest to the highest value; 0 without values.
func spread(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values) - slices.Min(values)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Calm runs Moved for moments without any cause. It returns how many panels seem to have
// moved (seen), and how many it examined (looked). It takes the longest phase in which
// nothing begins or ends, and repeatedly places an invented cause of length last in it,
// after a time of length rest.
func Calm(ctx context.Context, src chart.Source, run Run, rest, last time.Duration) (seen, looked int, err error) {
	claims, err := allClaims()
	if err != nil {
		return 0, 0, err
	}
	quiet := quietest(run)
	for start := quiet.Begin; !start.Add(rest + last).After(quiet.End); start = start.Add(rest + last) {
		part := Run{Span: Span{start, start.Add(rest + last), run.Scrape}, Phases: []Mark{{"calm", start, quiet.End}}}
		for _, c := range claims {
			c.Begin, c.End = start.Add(rest), part.End
			part.Causes = append(part.Causes, c)
		}
		motions, err := Moved(ctx, src, part)
		if err != nil {
			return 0, 0, err
		}
		moved := map[string]bool{} // by panel, for all of its claims
		for _, m := range motions {
			moved[m.Dashboard+m.Panel] = moved[m.Dashboard+m.Panel] || m.Seen
		}
		for _, m := range moved {
			if looked++; m {
				seen++
			}
		}
	}
	return seen, looked, nil
}

// allClaims returns a cause for each claim of each panel.
func allClaims() ([]Cause, error) {
	boards, err := dashboards.Load()
	if err != nil {
		return nil, err
	}
	var all []Cause
	for _, d := range boards {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				for _, claim := range p.Moves {
					name, of, _ := strings.Cut(claim, " ")
					all = append(all, Cause{Mark: Mark{Name: name}, Of: []string{of}})
				}
			}
		}
	}
	return all, nil
}

// quietest returns the longest phase in which no fault and no load begins or ends.
func quietest(run Run) Mark {
	var best Mark
	for _, p := range run.Phases {
		inside := func(t time.Time) bool { return t.After(p.Begin) && t.Before(p.End) }
		busy := slices.ContainsFunc(run.Causes, func(c Cause) bool { return inside(c.Begin) || inside(c.End) })
		if !busy && p.End.Sub(p.Begin) > best.End.Sub(best.Begin) {
			best = p
		}
	}
	return best
}
