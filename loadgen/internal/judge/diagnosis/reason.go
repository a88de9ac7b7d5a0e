package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// mechanism is a way in which a control plane goes wrong. The catalogue lists them the deepest first.
type mechanism struct {
	Kind, Title string
	// Any of these signals off at a component makes it fire there, with all of All off at it, and one of With anywhere.
	Any, All, With []string
	// Unless one of these is off at the component, or one of Without anywhere.
	Unless, Without []string
	// Except are components that it is not about.
	Except []string
	// Load: it follows from a load that grew, so it is told beside the causes and is none.
	Load bool
	// Moves are the signals that follow from it. A mechanism that shows by these alone is no cause beside it.
	Moves []string
	// Lag is how long after its end they still may begin.
	Lag time.Duration
	// Look says what to look at, Page is the incident's.
	Look, Page string
}

// firing is a mechanism with its evidence.
type firing struct {
	mechanism  *mechanism
	depth      int
	components []string
	evidence   []episode
	began      time.Time
	last       time.Time // of what is off
	ended      time.Time // zero: it goes on
	explains   map[string][]string
}

// reasoning holds what moved while causes are told from consequences.
type reasoning struct {
	catalogue catalogue
	all       []episode
	o         Options
}

// near is the time within which signals are off together: rates cover two scrapes, and a target answers late.
func (r reasoning) near() time.Duration { return 2 * r.o.Step }

// causes are the mechanisms that fire and follow from no other. Those of one kind at one time are one cause.
func (r reasoning) causes() []firing {
	var fired []firing
	for depth := range r.catalogue.Mechanisms {
		fired = append(fired, r.fire(&r.catalogue.Mechanisms[depth], depth)...)
	}
	explained := make([]bool, len(fired))
	for i := range fired {
		for j := range fired {
			if i != j && r.explains(fired[j], fired[i]) {
				explained[i] = true
				fired[j].explain(fired[i].mechanism.Title, fired[i].components)
			}
		}
	}
	var causes []firing
	for i := range fired {
		if !explained[i] {
			causes = r.join(causes, fired[i])
		}
	}
	return causes
}

// explains reports whether b follows from a. Of two kinds that would explain each other the deeper one does.
func (r reasoning) explains(a, b firing) bool {
	return r.follows(b.evidence, a) && (a.depth < b.depth || !r.follows(a.evidence, b))
}

// moves reports whether an episode is of the signals that follow from the mechanism.
func (m *mechanism) moves(e episode) bool {
	return slices.ContainsFunc(m.Moves, func(name string) bool {
		name, of, _ := strings.Cut(name, "@")
		return name == e.signal.Name && strings.HasPrefix(e.component, of)
	})
}

func (f *firing) explain(what string, components []string) {
	if f.explains == nil {
		f.explains = map[string][]string{}
	}
	all := append(f.explains[what], components...)
	slices.Sort(all)
	f.explains[what] = slices.Compact(all)
}

// follows reports whether all of the evidence is what a mechanism moves, in its time.
func (r reasoning) follows(evidence []episode, f firing) bool {
	for _, e := range evidence {
		if !f.mechanism.moves(e) || e.began.Before(f.began.Add(-r.near())) || e.began.After(f.last.Add(f.mechanism.Lag+r.near())) {
			return false
		}
	}
	return len(evidence) > 0
}

// fire lists where and when a mechanism fires.
func (r reasoning) fire(m *mechanism, depth int) (fired []firing) {
	for _, first := range r.all {
		if !slices.Contains(m.Any, first.signal.Name) || slices.Contains(m.Except, first.component) {
			continue
		}
		evidence := []episode{first}
		if !r.gather(&evidence, first, m.All) || r.off(m.Unless, first, true) || r.off(m.Without, first, false) {
			continue
		}
		if len(m.With) > 0 {
			at := slices.IndexFunc(r.all, func(e episode) bool { return slices.Contains(m.With, e.signal.Name) && e.overlaps(first, r.near()) })
			if at < 0 {
				continue
			}
			evidence = append(evidence, r.all[at])
		}
		fired = append(fired, firing{mechanism: m, depth: depth, components: []string{first.component}, evidence: evidence, began: first.began, last: first.last, ended: first.ended})
	}
	return fired
}

// gather adds the episodes of the signals at the component of first; false: one of them lies still.
func (r reasoning) gather(evidence *[]episode, first episode, signals []string) bool {
	for _, name := range signals {
		at := slices.IndexFunc(r.all, func(e episode) bool {
			return e.signal.Name == name && e.component == first.component && e.overlaps(first, r.near())
		})
		if at < 0 {
			return false
		}
		*evidence = append(*evidence, r.all[at])
	}
	return true
}

// off reports whether one of the signals is off at the time, at the component or anywhere.
func (r reasoning) off(signals []string, at episode, same bool) bool {
	return slices.ContainsFunc(r.all, func(e episode) bool {
		return slices.Contains(signals, e.signal.Name) && (!same || e.component == at.component) && e.overlaps(at, r.near())
	})
}

// together is the time within which firings of one mechanism are one cause, in scrapes.
const together = 4

func (r reasoning) join(all []firing, f firing) []firing {
	for i := range all {
		g := &all[i]
		if g.mechanism != f.mechanism || f.began.After(g.last.Add(together*r.o.Step)) {
			continue
		}
		g.evidence = append(g.evidence, f.evidence...)
		g.components = append(g.components, f.components...)
		slices.Sort(g.components)
		g.components = slices.Compact(g.components)
		if f.last.After(g.last) {
			g.last, g.ended = f.last, f.ended
		}
		for what, components := range f.explains {
			g.explain(what, components)
		}
		return all
	}
	return append(all, f)
}

const (
	// nearShare of what makes a signal be off is enough for a cause to be among the nearest.
	nearShare = 0.4
	// nearest is how many of them are told.
	nearest = 2
)

// reason tells causes from consequences.
func reason(known catalogue, all []series, o Options) result.Diagnosis {
	r := reasoning{catalogue: known, all: episodesOf(all, o, 1), o: o}
	causes := r.causes()
	d := result.Diagnosis{Answer: result.Healthy, Causes: []result.Cause{}, Symptoms: r.unexplained(causes)}
	for _, f := range causes {
		if f.mechanism.Load {
			d.Limits = append(d.Limits, r.cause(f))
		} else {
			d.Causes = append(d.Causes, r.cause(f))
		}
	}
	for _, told := range [][]result.Cause{d.Causes, d.Limits} {
		slices.SortStableFunc(told, func(a, b result.Cause) int { return a.Began.Compare(b.Began) })
	}
	switch {
	case len(d.Causes) > 0:
		d.Answer = result.Diagnosed
	case len(d.Symptoms) > 0:
		d.Answer = result.Unknown
		weak := reasoning{catalogue: known, all: episodesOf(all, o, nearShare), o: o}
		for _, f := range weak.causes() {
			d.Nearest = append(d.Nearest, weak.cause(f))
		}
		slices.SortStableFunc(d.Nearest, func(a, b result.Cause) int { return cmp.Compare(b.Strength, a.Strength) })
		d.Nearest = d.Nearest[:min(nearest, len(d.Nearest))]
	}
	return d
}

// unexplained are the symptoms that no cause explains; causes take note of those that they do.
func (r reasoning) unexplained(causes []firing) []result.Evidence {
	left := []result.Evidence{}
	for _, e := range r.all {
		if !e.signal.Symptom {
			continue
		}
		explained := false
		for i := range causes {
			if r.follows([]episode{e}, causes[i]) {
				explained = true
				causes[i].explain(e.signal.What, []string{e.component})
			}
		}
		if !explained {
			left = append(left, e.evidence())
		}
	}
	return left
}

func (r reasoning) cause(f firing) result.Cause {
	m := f.mechanism
	c := result.Cause{
		Kind: m.Kind, Title: m.Title, Components: f.components, Began: f.began, Ended: f.ended, Calm: []string{}, Explains: []result.Explains{}, Look: m.Look,
	}
	for _, e := range f.evidence {
		c.Evidence = append(c.Evidence, e.evidence())
		c.Strength = max(c.Strength, e.strength)
	}
	if m.Page != "" {
		c.Page = "docs/records/incidents/" + m.Page + ".md"
	}
	for _, name := range slices.Concat(m.Unless, m.Without) {
		if s := r.catalogue.signal(name); s != nil && !slices.Contains(c.Calm, s.What) {
			c.Calm = append(c.Calm, s.What)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(f.explains)) {
		c.Explains = append(c.Explains, result.Explains{What: what, Components: f.explains[what]})
	}
	c.Sentence = sentence(c, f.evidence)
	return c
}

// sentence says what moved, from when, and what lay still.
func sentence(c result.Cause, evidence []episode) string {
	strongest := slices.MaxFunc(evidence, func(a, b episode) int { return cmp.Compare(a.strength, b.strength) })
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", strings.Join(c.Components, ", "), strongest.signal.What)
	switch {
	case strongest.signal.Unit == unitEvent:
	case strongest.calm != nil && strongest.signal.Over == nil:
		fmt.Fprintf(&b, " %s -> %s", value(*strongest.calm, strongest.signal), value(strongest.under, strongest.signal))
	default:
		fmt.Fprintf(&b, " %s", value(strongest.under, strongest.signal))
	}
	fmt.Fprintf(&b, " from %s", c.Began.UTC().Format(time.TimeOnly))
	if len(c.Calm) > 0 {
		fmt.Fprintf(&b, "; %s calm", and(c.Calm))
	}
	return b.String()
}

func and(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// unitEvent is of signals that happen or do not.
const unitEvent = "event"

func value(v float64, s *signal) string { return chart.Format(scenario.Unit(s.Unit), v) }
