package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

type evidence struct {
	Compiled
	phases   map[string]result.Phase
	m        result.Measurements
	recovery *result.Recovery
	signals  []result.Signal
}

// reading is one measured value for a gate, such as the value of a phase or a load, or the reason why there is no
// value.
type reading struct {
	of    string // source of the value, such as "phase storm" or "storm/patch"
	phase string
	load  string // load that was measured; empty if the value is not of a single load
	// measuredIn lists the phases in which the value was measured. Nil means the phase in the field `phase` or, if that
	// is empty, the phases that Compiled.measuredIn returns.
	measuredIn []string
	value      float64
	// external is the value without the generator's own delay. Nil means that external is unknown or equal to value.
	external *float64
	// withheld means that the value was measured but must not be judged, for the reason in the field `missing`.
	withheld bool
	// missing is the reason why there is no value, or "". The field `nothing` is true if there was nothing to measure.
	missing string
	nothing bool
	// short means that the value is missing because the run was too short for the alert to fire.
	short bool
	// alike means that phases with the same reason in the field `missing` share one text, which lists these phases.
	alike bool
	// failed means that the gate fails regardless of the value, for the reason in detail.
	failed bool
	// atLeast means that value is only a lower bound of the true value.
	atLeast bool
	detail  string
}

type finding struct {
	readings []reading
	// whole means that the readings are parts of one value, which cannot be judged if a part is missing. summed means
	// that the gate judges the sum of the readings, not the worst of them.
	whole, summed bool
}

// lacks reports whether a reading has no value (missing is set) although one was expected.
func (f finding) lacks() bool {
	return slices.ContainsFunc(f.readings, func(r reading) bool { return r.missing != "" })
}

// perPhase returns a finding with one reading (measured value) for each phase that the gate covers.
func (e evidence) perPhase(read func(result.Phase) reading) finding {
	var f finding
	for _, name := range e.Over {
		r := reading{}
		if p, reached := e.phases[name]; reached {
			r = read(p)
		}
		if !r.failed {
			r.without(lack(name, e.phases))
		}
		r.phase, r.of = name, cmp.Or(r.of, name)
		f.readings = append(f.readings, r)
	}
	return f
}

// without sets the reason why the value is missing, unless `why` is empty or a reason is already set.
func (r *reading) without(why string) {
	if why != "" && r.missing == "" {
		r.missing, r.nothing = why, false
	}
}

// perLoad returns a finding with a reading (measured value) for each result of each load in each phase. A load with
// several kinds of requests has several results. For an expected load without results in a phase, the reading has
// `nothing` set.
func perLoad[T any](e evidence, loads func(result.Phase) []T, name func(T) string, read func(T) reading) finding {
	var f finding
	measured := map[string]bool{}
	for _, at := range e.expects {
		var found []reading
		for _, l := range loads(e.phases[at.phase]) {
			if name(l) == at.load {
				found = append(found, read(l))
			}
		}
		if len(found) == 0 {
			found = []reading{{nothing: true}}
		}
		for _, r := range found {
			r.without(lack(at.phase, e.phases))
			r.phase, r.load, r.of = at.phase, at.load, at.phase+"/"+at.load
			measured[at.load] = measured[at.load] || !r.nothing
			f.readings = append(f.readings, r)
		}
	}
	f.requireLoads(e, measured)
	return f
}

// requireLoads adds a reading without a value for each expected load that has no data in any phase.
func (f *finding) requireLoads(e evidence, measured map[string]bool) {
	for _, load := range loadsOf(e.expects) {
		if !measured[load] {
			f.readings = append(f.readings, reading{of: load, missing: fmt.Sprintf("load %s has no samples in %s", load, strings.Join(e.Over, ", "))})
		}
	}
}

func loadsOf(places []place) []string {
	var all []string
	for _, p := range places {
		if !slices.Contains(all, p.load) {
			all = append(all, p.load)
		}
	}
	return all
}

// lack returns the reason why a phase has no data, or "" if it has data. A phase has no data if
// it was not reached, was interrupted, or was changed by the user.
func lack(name string, phases map[string]result.Phase) string {
	p, reached := phases[name]
	switch {
	case len(phases) == 0:
		return "no phase was measured: the run ended before its first phase, or was killed"
	case !reached:
		return fmt.Sprintf("phase %s was never reached", name)
	case p.Interrupted:
		return fmt.Sprintf("phase %s was interrupted", name)
	}
	return steered(p)
}

func (e evidence) perRequests(read func(result.Requests) reading) finding {
	return perLoad(e, rundir.Requests, func(r result.Requests) string { return r.Load }, read)
}

func (e evidence) perWatches(read func(result.Watches) reading) finding {
	watches := func(p result.Phase) []result.Watches { return p.Watches }
	return perLoad(e, watches, func(w result.Watches) string { return w.Load }, read)
}

// requireEnds adds a reading without a value for each node failure whose end was observed neither in its phase nor
// later.
func (f *finding) requireEnds(e evidence) {
	for _, failed := range e.failures {
		at := slices.Index(e.order, failed)
		judged, stopped := false, false
		for _, r := range f.readings {
			if slices.Index(e.order, r.phase) >= at {
				judged = true
				stopped = stopped || !r.nothing && r.missing == ""
			}
		}
		if _, reached := e.phases[failed]; reached && judged && !stopped {
			f.readings = append(f.readings, reading{of: failed, missing: fmt.Sprintf("the end of the failure in %s was not observed", failed)})
		}
	}
}

type share struct{ part, of int64 }

func (s share) add(o share) share { return share{s.part + o.part, s.of + o.of} }

func (s share) ratio() float64 { return float64(s.part) / float64(max(s.of, 1)) }

// ratioOf returns a finding with one ratio over all loads and phases. `read` returns the two counts of a load.
// `external` returns these counts without the requests that the generator's own delay may have affected.
func (e evidence) ratioOf(noun string, read, external func(result.Requests) share) finding {
	var all, others share
	f := e.perRequests(func(r result.Requests) reading {
		all, others = all.add(read(r)), others.add(external(r))
		return reading{nothing: read(r).of == 0}
	})
	total := reading{of: "all", nothing: all.of == 0, measuredIn: e.Over}
	if all.of > 0 {
		total.value, total.external = all.ratio(), new(others.ratio())
		total.detail = fmt.Sprintf("%d of %d %s", all.part, all.of, noun)
	}
	kept := []reading{total}
	for _, r := range f.readings {
		if r.missing != "" {
			kept = append(kept, r)
		}
	}
	if e.strict {
		for _, name := range e.Over {
			if !slices.ContainsFunc(f.readings, func(r reading) bool { return r.phase == name && !r.nothing }) {
				kept = append(kept, reading{of: name, missing: "nothing was measured in " + name})
			}
		}
	}
	return finding{readings: kept, whole: true}
}

// withholdGeneratorDelay withholds values of client objectives for which the generator may be responsible: either it
// was saturated in a phase of the value, or the value breaks the bound but would meet it without the generator's own
// delay. It also withholds values of phases that the user changed. It keeps server-side metrics, and failures that a
// delay cannot cause.
func (e evidence) withholdGeneratorDelay(f finding) finding {
	if !e.objective.Client {
		return f
	}
	f.readings = slices.Clone(f.readings)
	for i, r := range f.readings {
		if r.nothing || r.missing != "" {
			continue
		}
		if why := cmp.Or(e.steered(r), e.saturation(r), e.delayed(r)); why != "" {
			f.readings[i].missing, f.readings[i].withheld = why, true
		}
	}
	return f
}

// delayed returns a text if a value breaks the bound only because of the generator's own delay, otherwise "".
func (e evidence) delayed(r reading) string {
	if e.boundless || r.failed || r.external == nil || e.holds(r.value) || !e.holds(*r.external) {
		return ""
	}
	u := e.objective.Unit
	return fmt.Sprintf("%s: %s is %s %s, but only because of the generator's own delay: without it, the value would be %s",
		r.of, show(u, r.value), side(e.op), show(u, e.bound), show(u, *r.external))
}

// saturation says in which phase of a reading the generator was saturated. The reading's value then cannot be trusted.
// saturation returns "" if there is no such phase. Values of the whole run, such as the registration of nodes, are
// measured before the first phase. For them, saturation returns a limit that the generator exceeded outside of all
// phases.
func (e evidence) saturation(r reading) string {
	if r.of == theRun {
		if outside := e.saturatedOutside(); len(outside) > 0 {
			return outside[0]
		}
		return ""
	}
	for _, name := range e.measuredIn(r) {
		if p := e.phases[name]; len(p.Saturated) > 0 {
			return "the generator was saturated in phase " + name
		}
	}
	return ""
}

// saturatedOutside returns the limits that the generator exceeded only outside of all phases.
func (e evidence) saturatedOutside() []string {
	outside := slices.Clone(e.m.Generator.Saturated)
	for _, p := range e.m.Phases {
		outside = slices.DeleteFunc(outside, func(s string) bool { return slices.Contains(p.Saturated, s) })
	}
	return outside
}

// measuredIn returns the phases in which a value was measured. A value that belongs to no particular phase, such as the
// recovery from a fault, was measured from the first phase of the gate to the end of the run.
func (c Compiled) measuredIn(r reading) []string {
	switch {
	case r.measuredIn != nil:
		return r.measuredIn
	case r.phase != "":
		return []string{r.phase}
	}
	return c.between(c.Over[0], c.order[len(c.order)-1])
}

func (c Compiled) between(first, last string) []string {
	from, to := slices.Index(c.order, first), slices.Index(c.order, last)
	if from < 0 || to < from {
		return nil
	}
	return c.order[from : to+1]
}

func (e evidence) stalled(phases []string) float64 {
	var sum float64
	for _, name := range phases {
		sum += e.phases[name].StalledSeconds
	}
	return sum
}

// failedBefore returns the phase in which the last node failure before or in the given phase began. If no node failed
// by then, it returns the given phase.
func (e evidence) failedBefore(phase string) string {
	since := phase
	for _, name := range e.failures {
		if slices.Index(e.order, name) <= slices.Index(e.order, phase) {
			since = name
		}
	}
	return since
}
