package gate

import (
	"fmt"
	"slices"
)

// withholdGeneratorDelay withholds values of client objectives that the generator's own
// delay may have caused: where it was saturated in a phase of the value, or where the
// value breaks the bound and would hold it without that delay. Server-side metrics, and
// facts that no delay can cause, keep their verdict.
func (e evidence) withholdGeneratorDelay(f finding) finding {
	if !e.objective.client {
		return f
	}
	f.readings = slices.Clone(f.readings)
	for i, r := range f.readings {
		if r.nothing || r.missing != "" {
			continue
		}
		if why := e.saturation(r); why != "" {
			f.readings[i].missing, f.readings[i].withheld = why, true
			continue
		}
		if e.boundless || r.failed || r.external == nil || e.holds(r.value) || !e.holds(*r.external) {
			continue
		}
		u := e.objective.Unit
		f.readings[i].missing, f.readings[i].withheld = fmt.Sprintf("%s: %s is %s %s, %s without the generator's own delay is not",
			r.of, show(u, r.value), side(e.op), show(u, e.bound), show(u, *r.external)), true
	}
	return f
}

// saturation says why a value cannot be trusted: the generator was saturated in a phase
// that it was measured in. A value of no single phase, such as the recovery from a fault,
// belongs to the gate's phases and all after them; one of the whole run, such as the
// registration of nodes, to the time before the first phase.
func (e evidence) saturation(r reading) string {
	if r.of == theRun {
		if outside := e.saturatedOutside(); len(outside) > 0 {
			return outside[0]
		}
		return ""
	}
	phases := r.measuredIn
	switch {
	case phases != nil:
	case r.phase != "":
		phases = []string{r.phase}
	default:
		phases = e.between(e.Over[0], e.order[len(e.order)-1])
	}
	for _, name := range phases {
		if p := e.phases[name]; len(p.Saturated) > 0 {
			return "the generator was saturated in " + name
		}
	}
	return ""
}

// saturatedOutside are the bounds that the generator passed in none of the phases.
func (e evidence) saturatedOutside() []string {
	outside := slices.Clone(e.m.Generator.Saturated)
	for _, p := range e.m.Phases {
		outside = slices.DeleteFunc(outside, func(s string) bool { return slices.Contains(p.Saturated, s) })
	}
	return outside
}

func (e evidence) between(first, last string) []string {
	from, to := slices.Index(e.order, first), slices.Index(e.order, last)
	if from < 0 || to < from {
		return nil
	}
	return e.order[from : to+1]
}

func (e evidence) stalled(phases []string) float64 {
	var sum float64
	for _, name := range phases {
		sum += e.phases[name].StalledSeconds
	}
	return sum
}

// failedBefore is the phase of the last node failure that began in a phase or
// before it; the phase itself if none did.
func (e evidence) failedBefore(phase string) string {
	since := phase
	for _, name := range e.failures {
		if slices.Index(e.order, name) <= slices.Index(e.order, phase) {
			since = name
		}
	}
	return since
}
