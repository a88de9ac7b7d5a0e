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

// Mark is a named period of a run: a phase or a cause. A fault or load is named by its kind.
type Mark struct {
	Name       string
	Begin, End time.Time
}

const (
	// visible is the minimum distance that a line must move for a reader to notice, as a fraction of the height of the
	// panel. It is about the height of a line of text.
	visible = 0.1
	// surely is the minimum fraction of pairs whose values differ in the same direction. A pair is a value during a
	// cause and a value before it; the fraction is the Mann-Whitney U statistic divided by the number of pairs. In
	// healthy runs, 5 to 15% of panels move this much by chance (see Calm). With a simpler rule (a peak 10% above all
	// earlier values), 30% of panels moved.
	surely = 0.9
	// flat is the maximum range of the values of a line at rest, as a fraction of the height of the panel. A short peak
	// of such a line also counts as motion.
	flat = 0.02
)

// Motion describes how a panel reacted to a cause (a fault or a load) that it claims to show.
type Motion struct {
	Dashboard, Panel, Claim string
	// By is the motion of the line that shows the cause best, as a fraction of the panel's height: the difference of
	// its medians before and during the cause. For a line at rest with a short peak, it is the distance by which the
	// peak left the range of the earlier values.
	By float64
	// Surely is the fraction of pairs whose values differ in the same direction, from 0.5 to 1. A pair is a value during the
	// cause and a value before it.
	Surely float64
	// Came means that a line appeared in a panel without lines, or with only flat lines.
	Came bool
	// Seen means that the motion is large and clear enough for a reader to notice.
	Seen bool
}

func (m Motion) String() string {
	if m.Came {
		return fmt.Sprintf("%s: %s: a line appeared during %s", m.Dashboard, m.Panel, m.Claim)
	}
	return fmt.Sprintf("%s: %s moved by %.0f%% of its height during %s; %.0f%% of its values were beyond the earlier ones",
		m.Dashboard, m.Panel, 100*m.By, m.Claim, 100*m.Surely)
}

// Moved examines the panels that claim to show a cause in the run. It compares their lines during the cause and before
// the first fault. It skips causes at the start of the run, which have no time before them. It also skips panels
// without data, because Check reports these.
func Moved(ctx context.Context, src chart.Source, run Run) ([]Motion, error) {
	if len(run.Causes) == 0 {
		return nil, nil
	}
	step := run.step(maxPoints)
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

// byPanel groups answers by their panel.
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

// windows holds the time ranges that Moved compares for a panel's claim to show certain causes: the range before these
// causes, and the ranges in which they act.
type windows struct {
	artist
	before Mark
	// under holds the times in which a cause may affect a rate: from its start until one rate range after its end. core
	// holds the times in which the whole range of a rate lies within the cause. If a cause is shorter than two ranges,
	// core is instead the time in under without the first and the last scrape interval.
	under, core []Mark
}

// watched returns the windows of a claim. It returns false if the run has no such cause, or if the time before both
// this cause and the first fault is too short. The window `before` starts one rate range after the start of a phase or of
// the run, because earlier rates include the previous phase. watched uses the last phase for which this window is
// longer than a rate range.
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

// stretches holds the values of one line of a panel in each window, as fractions of the panel's height.
type stretches struct{ before, under, core []float64 }

// motion returns the motion of the line that shows a cause best, or false if the panel has no values.
func (w windows) motion(p dashboards.Panel, answers []answer) (Motion, bool) {
	lines, any := w.heights(p, answers)
	if !any {
		return Motion{}, false
	}
	var rest []float64 // the values of all lines before the cause
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

// heights returns the values of each line of a panel in each window. `any` is false if no line has a value.
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

// beyond compares all pairs of a value and an earlier value. It returns the fraction of pairs in which the later value
// is higher, or the fraction in which it is lower, whichever is larger. A pair of equal values counts half for each.
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

// excursion returns how far values leave the range of the values in `before`. It is negative if they stay inside.
func excursion(before, values []float64) float64 {
	return max(slices.Max(values)-slices.Max(before), slices.Min(before)-slices.Min(values))
}

// spread returns the distance from the lowest to the highest value, or 0 if there are no values.
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

// Calm measures how often Moved reports a motion by chance. It takes the longest phase in which no fault and no load
// begins or ends, divides it into parts, and runs Moved on each part with invented causes. An invented cause begins at
// the time `rest` after the start of its part, and lasts for the time `last`. `looked` is the number of examined
// panels, and `seen` is the number of panels that seem to have moved.
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
		moved := map[string]bool{} // by panel: true if it moved for any of its claims
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

// allClaims returns an invented cause for each claim of each panel.
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

// quietest returns the longest phase during which no fault and no load begins or ends.
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
