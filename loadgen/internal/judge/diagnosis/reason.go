package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/loadgen/result"
)

// mechanism is a known way in which a control plane fails. The catalogue lists a mechanism before the mechanisms that
// it can cause.
type mechanism struct {
	Kind, Title string
	// Any, All and With list the signals that make the mechanism fire at a component. One signal of Any and every
	// signal of All must deviate there at the same time. If With is not empty, one signal of With must also deviate,
	// at any component. The deviation of the signal of Any is called the first evidence.
	Any, All, With []string
	// Unless and Without list signals that prevent the mechanism from firing. A signal of Unless prevents it by a
	// deviation at the component of the first evidence, a signal of Without by a deviation at any component.
	Unless, Without []string
	// Exceeds lists signals that must change less than the signal of the first evidence at the same time, at any
	// component. Otherwise the mechanism does not fire.
	Exceeds []string
	// Share is the minimum change of a signal of All or Unless, relative to the change of the first evidence. Smaller
	// changes are ignored. Zero means no minimum.
	Share float64
	// OfLargest is the minimum change of the first evidence, as a fraction of the change of the same signal at any
	// other component at that time. Zero means no minimum.
	OfLargest float64 `yaml:"ofLargest"`
	// WhenStarved lists signals. If waiting for CPU can explain the first evidence, one of these signals must also
	// deviate at the same component. The list has no effect if none of its signals was recorded.
	WhenStarved []string `yaml:"whenStarved"`
	// Recorded lists signals that must have data for the mechanism to fire.
	Recorded []string
	// Proof names a signal that must also deviate, at any component, if the first evidence lasts longer than
	// ProofAfter. Empty means that no such signal is needed.
	Proof      string
	ProofAfter time.Duration `yaml:"proofAfter"`
	// OnlyBy replaces kind, title and advice if OnlyBy.Signal is the only signal of Any that deviates. Nil means never.
	OnlyBy *renamed `yaml:"onlyBy"`
	// Except lists components at which the mechanism never fires.
	Except []string
	// Load marks a mechanism that results from a growing load or from the machine. It is a cause only if it explains a
	// failed gate, or a symptom of clients that no other cause explains. Otherwise it is a limit (Diagnosis.Limits).
	Load bool
	// Slows marks a mechanism that only makes processes slow. Such a mechanism explains failed gates on latencies and
	// durations, but not on counts.
	Slows bool
	// Moves lists the signals that the mechanism makes deviate. Another mechanism whose evidence consists only of these
	// signals is a consequence of this mechanism.
	Moves []string
	// Symptoms lists further symptoms that the mechanism explains. Unlike Moves, the list does not make other
	// mechanisms consequences.
	Symptoms []string
	// MovesOf replaces Moves by one list for each kind of component at which the mechanism can fire. If kube-apiserver
	// has no entry, Moves applies to it. The list of any other kind without an entry is empty. Nil means that Moves
	// applies to all kinds.
	MovesOf map[string][]string `yaml:"movesOf"`
	// Return lists the signals of Moves that deviate only because clients reconnect when the mechanism ends at an API
	// server.
	Return []string
	// Stops marks a mechanism that ends processes directly. Exits of processes can then be consequences even if the
	// API was reachable.
	Stops bool
	// Lead and Lag limit when consequences may begin: from Lead before the first evidence to Lag after the last
	// deviating value.
	Lag, Lead time.Duration
	// Span is a regular expression for the span that shows the mechanism in a trace. It matches the span's process and
	// name, such as "etcd-0 txn". Empty means that no span shows the mechanism.
	Span string
	// Look is advice on what to examine. Page is the name of the page about the mechanism in docs/incidents, without
	// .md.
	Look, Page string
}

// renamed holds the kind, title and advice that a mechanism gets if Signal is the only signal of Any that deviates.
type renamed struct{ Signal, Kind, Title, Look string }

// firing is a mechanism that fired at some components, with its evidence.
type firing struct {
	mechanism  *mechanism
	depth      int
	components []string
	evidence   []episode
	began      time.Time
	last       time.Time // time of the last deviating value of the evidence
	ended      time.Time // end of the firing; zero if it has not ended
	explains   map[string][]string
	harms      bool // whether the mechanism explains a failed gate or a symptom that clients notice
}

// reasoning separates causes from consequences among episodes (time ranges in which a signal deviates) that overlap.
type reasoning struct {
	catalogue catalogue
	recorded  []series
	all       []episode
	waits     starvation
	o         Options
}

func newReasoning(known catalogue, recorded []series, o Options, share float64) reasoning {
	waits := starvationOf(recorded)
	return reasoning{catalogue: known, recorded: recorded, all: episodesOf(recorded, waits, o, share), waits: waits, o: o}
}

// near returns the maximum gap between two episodes (deviations of signals) that count as simultaneous: two scrape
// intervals, because a rate covers two scrapes and a target may answer late.
func (r reasoning) near() time.Duration { return 2 * r.o.Step }

// causes returns the firings (mechanisms that fired) that are not consequences of other firings. It merges firings of
// one mechanism at about the same time into one cause.
func (r reasoning) causes() []firing {
	var fired []firing
	for depth := range r.catalogue.Mechanisms {
		fired = append(fired, r.fire(&r.catalogue.Mechanisms[depth], depth)...)
	}
	explained := make([][]int, len(fired)) // by firing: the firings that are its consequences
	for i := range fired {
		for j := range fired {
			if i != j && r.explains(fired[j], fired[i]) {
				explained[j] = append(explained[j], i)
				fired[j].explain(fired[i].mechanism.Title, fired[i].components)
			}
		}
	}
	var causes []firing
	for _, i := range roots(explained) {
		causes = r.join(causes, fired[i])
	}
	return causes
}

// roots returns a minimal set of firings (mechanisms that fired) that explains all other firings. explained[i] lists
// the consequences of firing i. The set contains the firings that are no consequences. It also contains the first
// firing of each cycle of firings that explain each other, unless a firing outside the cycle explains them.
func roots(explained [][]int) (all []int) {
	follows, reached := make([]bool, len(explained)), make([]bool, len(explained))
	for _, of := range explained {
		for _, i := range of {
			follows[i] = true
		}
	}
	var reach func(i int)
	reach = func(i int) {
		if reached[i] {
			return
		}
		reached[i] = true
		for _, j := range explained[i] {
			reach(j)
		}
	}
	for _, circles := range []bool{false, true} {
		for i := range explained {
			if !reached[i] && (circles || !follows[i]) {
				all = append(all, i)
				reach(i)
			}
		}
	}
	slices.Sort(all)
	return all
}

// explains reports whether b, a mechanism that fired, is a consequence of a. If each could be a consequence of the
// other, the earlier firing is the cause. If they began less than a scrape interval apart, the firing that the
// catalogue lists first is the cause.
func (r reasoning) explains(a, b firing) bool {
	if !r.follows(b.evidence, a) {
		return false
	}
	if earlier := b.began.Sub(a.began); earlier.Abs() >= r.o.Step {
		return earlier > 0 || !r.follows(a.evidence, b)
	}
	return a.depth < b.depth || !r.follows(a.evidence, b)
}

// moves reports whether the mechanism that fired can make the signal of the episode deviate, at the episode's
// component.
func (f firing) moves(e episode) bool {
	moves, ok := f.mechanism.MovesOf[f.family()]
	if !ok && (f.mechanism.MovesOf == nil || slices.ContainsFunc(f.components, isAPIServer)) {
		moves = f.mechanism.Moves
	}
	return e.isOf(moves) || slices.Contains(f.components, e.component) && slices.Contains(moves, e.signal.Name+"@same")
}

// returns reports whether the episode's signal deviates only when the mechanism ends at an API server (see
// mechanism.Return).
func (f firing) returns(e episode) bool {
	return slices.Contains(f.mechanism.Return, e.signal.Name) && slices.ContainsFunc(f.components, isAPIServer)
}

func isAPIServer(component string) bool { return strings.HasPrefix(component, control.KindAPIServer) }

// isOf reports whether names include the signal of the episode. A name is a signal, such as "hangs", or a signal at a
// kind of component, such as "hangs@kube-apiserver".
func (e episode) isOf(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
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

// follows reports whether a firing can explain all episodes (deviations) in evidence, by its mechanism and its time. It
// returns false if evidence is empty.
func (r reasoning) follows(evidence []episode, f firing) bool {
	for _, e := range evidence {
		if !f.moves(e) || !f.mechanism.Stops && !r.mayFollow(e) || f.returns(e) && e.began.Before(f.last.Add(-r.o.Step)) || !r.inTime(e, f) {
			return false
		}
	}
	return len(evidence) > 0
}

// inTime reports whether an episode (deviation) began when the firing could cause it, and did not last too long after
// the firing (see outlasts).
func (r reasoning) inTime(e episode, f firing) bool {
	return !e.began.Before(r.earliest(e, f)) && !e.began.After(f.last.Add(f.mechanism.Lag+r.near())) && !r.outlasts(e, f)
}

// aftermath is how long a consequence may last after its cause has ended. If the Lag of the mechanism is longer, Lag
// applies.
const aftermath = 30 * time.Second

// outlasts reports whether an episode (deviation) ends so long after a firing that it cannot be a consequence of the
// firing.
func (r reasoning) outlasts(e episode, f firing) bool {
	return e.last.After(f.last.Add(max(f.mechanism.Lag, aftermath) + r.near() + e.signal.Delay))
}

// earliest returns the earliest time at which the episode e (a deviation) can begin if it is a consequence of the
// firing f.
func (r reasoning) earliest(e episode, f firing) time.Time {
	if e.signal.Delay > 0 {
		return f.began.Add(e.signal.Delay - r.o.Step)
	}
	return f.began.Add(-r.near() - f.mechanism.Lead)
}

// renewDeadline is the default of --leader-elect-renew-deadline in Kubernetes. A leader that was paused may still
// exit this long after the pause.
const renewDeadline = 10 * time.Second

// mayFollow reports whether an episode (deviation) can be a consequence of another one. The exit of a process can be a
// consequence only if the API was unreachable at that time, or if the process had been paused until shortly before.
func (r reasoning) mayFollow(e episode) bool {
	x := r.catalogue.Exits
	return !e.isOf(x.Signals) || slices.ContainsFunc(r.all, func(o episode) bool {
		until := o.last.Add(r.near())
		same := o.component == e.component && slices.Contains(x.After, o.signal.Name+"@same")
		if same {
			until = until.Add(renewDeadline)
		}
		return (same || o.isOf(x.After)) && !o.began.After(e.began) && !e.began.After(until)
	})
}

// fire returns a firing for each episode (deviation) that meets the conditions of the mechanism m.
func (r reasoning) fire(m *mechanism, depth int) (fired []firing) {
	if slices.ContainsFunc(m.Recorded, func(name string) bool { return !r.has(name) }) {
		return nil
	}
	for _, first := range r.all {
		if !slices.Contains(m.Any, first.signal.Name) || slices.Contains(m.Except, first.component) {
			continue
		}
		evidence := []episode{first}
		if !r.gather(&evidence, first, m) || r.prevented(m, first) || r.deviates(m.Without, first, false) || !r.exceeds(first, m.Exceeds) {
			continue
		}
		if slices.ContainsFunc(m.WhenStarved, r.has) && r.starved(first) && !r.deviates(m.WhenStarved, first, true) {
			continue
		}
		if m.OfLargest > 0 && r.dwarfed(first, m.OfLargest) {
			continue
		}
		if m.Proof != "" && first.last.Sub(first.began) > m.ProofAfter && !r.deviates([]string{m.Proof}, first, false) {
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

// starved reports whether waiting for CPU may explain an episode: a signal of a mechanism with mechanism.Slows deviates
// at the same time, or at some time in the episode the measured wait explains at least half of signal.Least.
func (r reasoning) starved(e episode) bool {
	for _, m := range r.catalogue.Mechanisms {
		if m.Slows && r.deviates(m.Any, e, false) {
			return true
		}
	}
	for at := range r.waits[e.component] {
		if !at.Before(e.began) && !at.After(e.last) && 2*r.waits.least(e.signal, e.component, at) >= e.signal.Least {
			return true
		}
	}
	return false
}

// gather adds to evidence, for each signal of m.All, one episode that accompanies the episode `first` (see
// accompanies). It returns false if a signal has no such episode.
func (r reasoning) gather(evidence *[]episode, first episode, m *mechanism) bool {
	for _, name := range m.All {
		at := slices.IndexFunc(r.all, func(e episode) bool {
			return e.signal.Name == name && r.accompanies(e, first, m)
		})
		if at < 0 {
			return false
		}
		*evidence = append(*evidence, r.all[at])
	}
	return true
}

// prevented reports whether a signal of m.Unless deviates at the same time and component as the episode `first`.
func (r reasoning) prevented(m *mechanism, first episode) bool {
	return slices.ContainsFunc(r.all, func(e episode) bool {
		return slices.Contains(m.Unless, e.signal.Name) && r.accompanies(e, first, m)
	})
}

// accompanies reports whether the episode e is at the same component and time as the episode `first`, and the change of
// e is at least m.Share times the change of `first`.
func (r reasoning) accompanies(e, first episode, m *mechanism) bool {
	return e.component == first.component && e.overlaps(first, r.near()) && (m.Share == 0 || e.change() >= m.Share*first.change())
}

// deviates reports whether one of the signals deviates during the episode `at`. If same is set, only deviations at the
// component of that episode count.
func (r reasoning) deviates(signals []string, at episode, same bool) bool {
	return slices.ContainsFunc(r.all, func(e episode) bool {
		return slices.Contains(signals, e.signal.Name) && (!same || e.component == at.component) && e.overlaps(at, r.near())
	})
}

// deviatesBy reports whether one of the signals, apart from the one named `except`, deviates at a component of the
// firing f, between the start of f and the mechanism's Lag after its end.
func (r reasoning) deviatesBy(signals []string, except string, f firing) bool {
	others := slices.DeleteFunc(slices.Clone(signals), func(name string) bool { return name == except })
	return slices.ContainsFunc(f.components, func(component string) bool {
		return r.deviates(others, episode{component: component, began: f.began, last: f.last.Add(f.mechanism.Lag)}, true)
	})
}

// dwarfed reports whether the signal of e changed much more at another component at the same time: the change of e is
// smaller than share times the other change.
func (r reasoning) dwarfed(e episode, share float64) bool {
	return slices.ContainsFunc(r.all, func(o episode) bool {
		return o.signal == e.signal && o.overlaps(e, r.near()) && e.change() < share*o.change()
	})
}

// exceeds reports whether the change of an episode is larger than the change of each given signal at that time, at any
// component.
func (r reasoning) exceeds(e episode, signals []string) bool {
	return !slices.ContainsFunc(r.all, func(o episode) bool {
		return slices.Contains(signals, o.signal.Name) && o.overlaps(e, r.near()) && o.change() >= e.change()
	})
}

// together is the maximum gap, in scrape intervals, between two firings of one mechanism that the method join merges.
const together = 4

// family returns the kind of the firing's component, such as "etcd" for etcd-0, or "" if the component is not a
// process.
func (f firing) family() string {
	if by := f.evidence[0].signal.Component; by != model.InstanceLabel && by != "component_instance" {
		return ""
	}
	for _, kind := range control.Kinds() {
		if rest, ok := strings.CutPrefix(f.components[0], kind); ok && (rest == "" || strings.ContainsRune("- .:", rune(rest[0]))) {
			return kind
		}
	}
	return strings.TrimRight(f.components[0], "-0123456789")
}

// join merges a firing (a mechanism that fired) into the cause with the same mechanism and kind of component at about
// the same time. If all contains no such cause, join appends the firing to all.
func (r reasoning) join(all []firing, f firing) []firing {
	for i := range all {
		g := &all[i]
		within := together * r.o.Step
		if slices.Equal(g.components, f.components) { // the component may need time to recover
			within = max(within, f.mechanism.Lag)
		}
		if g.mechanism != f.mechanism || g.family() != f.family() || f.began.After(g.last.Add(within)) {
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
	// nearShare is the factor for all bounds in the search for the nearest causes, so that weaker deviations count too.
	nearShare = 0.4
	// nearest is the maximum number of nearest causes in a diagnosis.
	nearest = 2
)

// reason returns a diagnosis with the causes, the limits and the symptoms without a known cause. If there are only
// symptoms, it adds the nearest causes: mechanisms that almost fired.
func reason(known catalogue, all []series, o Options) result.Diagnosis {
	r := newReasoning(known, all, o, 1)
	causes := r.causes()
	d := result.Diagnosis{Answer: result.Healthy, Causes: []result.Cause{}, Standing: r.standing(), Doubts: r.disturbedCalm()}
	d.Symptoms = append(r.unexplained(causes), r.unexplainedGates(causes)...)
	slices.SortStableFunc(causes, func(a, b firing) int { // limits come last, because they explain only the remaining symptoms
		return cmp.Or(cmp.Compare(bools.Int(a.mechanism.Load), bools.Int(b.mechanism.Load)), a.began.Compare(b.began))
	})
	for _, f := range causes {
		if f.mechanism.Load && !f.harms {
			d.Limits = addLimit(d.Limits, r.cause(f))
		} else {
			d.Causes = append(d.Causes, r.cause(f))
		}
	}
	for _, e := range d.Standing {
		d.Doubts = append(d.Doubts, fmt.Sprintf("%s: %s, also in the comparison period", e.Component, e.What))
	}
	switch {
	case len(d.Causes) > 0:
		d.Answer = result.Diagnosed
	case len(d.Symptoms) > 0:
		d.Answer = result.Unknown
		weak := newReasoning(known, all, o, nearShare)
		for _, f := range weak.causes() {
			if !f.mechanism.Load {
				d.Nearest = append(d.Nearest, weak.cause(f))
			}
		}
		slices.SortStableFunc(d.Nearest, func(a, b result.Cause) int { return cmp.Compare(b.Strength, a.Strength) })
		d.Nearest = d.Nearest[:min(nearest, len(d.Nearest))]
	}
	return d
}

// addLimit adds the cause c to the limits of a diagnosis. If there is a limit with the same kind and components,
// addLimit extends that limit instead.
func addLimit(all []result.Cause, c result.Cause) []result.Cause {
	for i := range all {
		if l := &all[i]; l.Kind == c.Kind && slices.Equal(l.Components, c.Components) {
			l.Ended, l.Evidence = c.Ended, append(l.Evidence, c.Evidence...)
			return all
		}
	}
	return append(all, c)
}

func (r reasoning) cause(f firing) result.Cause {
	m := f.mechanism
	c := result.Cause{
		Kind: m.Kind, Title: m.Title, Components: f.components, Began: f.began, Ended: f.ended, Calm: []string{}, Explains: []result.Explains{}, Look: m.Look, Limit: m.Load,
	}
	for _, e := range f.evidence {
		c.Evidence = append(c.Evidence, e.evidence())
		c.Strength = max(c.Strength, e.strength)
	}
	if m.Page != "" {
		c.Page = "docs/incidents/" + m.Page + ".md"
	}
	if o := m.OnlyBy; o != nil && !r.deviatesBy(m.Any, o.Signal, f) {
		c.Kind, c.Title, c.Look = o.Kind, o.Title, o.Look
	}
	for i := range r.catalogue.Signals {
		if s := &r.catalogue.Signals[i]; s.Short != "" && s.Name != m.Proof && r.calm(s, f) {
			c.Calm = append(c.Calm, s.Short)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(f.explains)) {
		c.Explains = append(c.Explains, result.Explains{What: what, Components: f.explains[what]})
	}
	c.Sentence = sentence(c, f.evidence)
	return c
}

// has reports whether a signal with that name has data.
func (r reasoning) has(name string) bool {
	return slices.ContainsFunc(r.recorded, func(one series) bool { return one.signal.Name == name })
}

// calm reports whether a signal has data and did not deviate at any component near the time of a firing.
func (r reasoning) calm(s *signal, f firing) bool {
	return isComparable(r.recorded, s, r.o) &&
		!slices.ContainsFunc(r.all, func(e episode) bool {
			return e.signal.Name == s.Name && !e.began.After(f.last.Add(r.near())) && !f.began.After(e.last.Add(r.near()))
		})
}
