package diagnosis

import (
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
)

// unexplained returns the symptoms that no cause explains. It adds every other symptom to the causes that explain it.
// Causes whose mechanism has Load set explain only symptoms that no other cause explains.
func (r reasoning) unexplained(causes []firing) []result.Evidence {
	left := []result.Evidence{}
	for _, e := range r.all {
		if e.signal.Symptom && !r.explain(e, causes, false) && !r.explain(e, causes, true) {
			left = append(left, e.evidence())
		}
	}
	return left
}

// explain adds a symptom to the causes that explain it, and reports whether there are any. It considers only causes
// with a mechanism whose Load equals limits.
func (r reasoning) explain(e episode, causes []firing, limits bool) (explained bool) {
	for i := range causes {
		f := &causes[i]
		switch {
		case f.mechanism.Load != limits:
		case slices.Contains(f.evidence, e):
			explained = true
		case r.follows([]episode{e}, *f), e.isOf(f.mechanism.Symptoms) && r.inTime(e, *f):
			explained, f.harms = true, f.harms || !e.signal.Inner
			if !slices.ContainsFunc(f.evidence, func(own episode) bool { return own.signal.What == e.signal.What && own.component == e.component }) {
				f.explain(e.signal.What, []string{e.component})
			}
		}
	}
	return explained
}

// unexplainedGates returns the failed gates that no cause explains. It adds every other failed gate to the causes that
// explain it.
func (r reasoning) unexplainedGates(causes []firing) (left []result.Evidence) {
	for _, g := range r.o.Failed {
		if !r.explainGate(g, causes, false) && !r.explainGate(g, causes, true) {
			e := result.Evidence{Signal: "gate", What: fmt.Sprintf("gate %s failed: %s", g.Name, g.Detail), Unit: unitEvent, Under: 1, Began: r.o.Under.From}
			if len(g.Broken) > 0 {
				e.Began = g.Broken[0].From
			}
			left = append(left, e)
		}
	}
	return left
}

// explainGate adds a failed gate to each cause that was active, or had just ended, when the gate broke its bound. It
// reports whether there is such a cause. It considers only causes with a mechanism whose Load equals limits.
func (r reasoning) explainGate(g FailedGate, causes []firing, limits bool) (explained bool) {
	broken := g.Broken
	if len(broken) == 0 {
		broken = []result.Span{{From: r.o.Calm.From, To: r.o.Under.To}}
	}
	for i := range causes {
		f := &causes[i]
		if f.mechanism.Load != limits || f.mechanism.Slows && !g.Slow {
			continue
		}
		until := f.last.Add(max(f.mechanism.Lag, aftermath) + r.near())
		if slices.ContainsFunc(broken, func(s result.Span) bool { return !f.began.After(s.To) && !until.Before(s.From) }) {
			explained, f.harms = true, true
			f.explain("failed gate", []string{g.Name})
		}
	}
	return explained
}

// disturbedCalm returns a doubt (a reason why the diagnosis may be incomplete) for each signal that broke an objective
// or a fixed bound in the comparison period.
func (r reasoning) disturbedCalm() (doubts []string) {
	if r.o.Calm.To.Equal(r.o.Under.From) || r.o.tooShort(r.o.Calm) {
		return nil // Diagnose searches the comparison period too, or the comparison period is too short
	}
	calm, signs := r.o, r.catalogue.signs()
	calm.Under = calm.Calm
	for _, e := range episodesOf(r.recorded, r.waits, calm, 1) {
		said := fmt.Sprintf("the comparison period shows a problem too: %s: %s", e.component, e.text())
		bounded := e.signal.Level || e.signal.Limit != nil && e.under >= *e.signal.Limit
		if bounded && (e.signal.Symptom || signs[e.signal]) && !slices.Contains(doubts, said) {
			doubts = append(doubts, said)
		}
	}
	return doubts
}

// standing returns the signals that indicate a cause and whose median reached a fixed bound in both the comparison
// period and the diagnosed time. They do not count as deviating, because they were as high in the comparison period.
func (r reasoning) standing() (all []result.Evidence) {
	signs := r.catalogue.signs()
	for _, one := range r.recorded {
		s, calm, under := one.signal, baselineOf(one.points, r.o.Calm), baselineOf(one.points, r.o.Under)
		if signs[s] && s.Over != nil && !s.Level && calm.known && calm.median >= *s.Over && under.known && under.median >= *s.Over {
			all = append(all, episode{signal: s, component: one.component, calm: &calm.median, under: under.median, began: r.o.Calm.From, strength: s.strength(under.median, calm)}.evidence())
		}
	}
	return all
}
