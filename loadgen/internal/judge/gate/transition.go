package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
)

// defaultQuantile is the default quantile of transition-latency.
const defaultQuantile = 0.99

// quantiles returns functions that read the recorded quantiles, by fraction: 0.99 is the p99.
func quantiles() map[float64]func(result.Latency) float64 {
	return map[float64]func(result.Latency) float64{
		0.5:   func(l result.Latency) float64 { return l.P50 },
		0.9:   func(l result.Latency) float64 { return l.P90 },
		0.95:  func(l result.Latency) float64 { return l.P95 },
		0.99:  p99,
		0.999: func(l result.Latency) float64 { return l.P999 },
		1:     func(l result.Latency) float64 { return l.Max },
	}
}

func (c Compiled) quantile() float64 { return cmp.Or(c.Quantile, defaultQuantile) }

func (c Compiled) checkTransition(s *plan.Plan, path string) error {
	var known []string
	for _, t := range s.Transitions {
		known = append(known, t.Name)
	}
	all := strings.Join(known, ", ")
	switch {
	case c.objective.Requires != "transitions" && c.Transition != "":
		return s.Errorf(path+".transition", "leave it out", "objective %s does not apply to transitions", c.objective.Name)
	case c.objective.Name != "transition-latency" && c.Quantile != 0:
		return s.Errorf(path+".quantile", "leave it out; it belongs to transition-latency", "objective %s takes no quantile", cmp.Or(c.objective.Name, "expr"))
	case c.objective.Requires != "transitions" || len(known) == 0: // lacks reports that
		return nil
	case c.Transition == "":
		return s.Errorf(path, "add transition: "+known[0], "gate %q names no transition", c.Name)
	case !slices.Contains(known, c.Transition):
		return s.Errorf(path+".transition", strictyaml.Hint(c.Transition, known, "transitions: "+all), "no transition %q", c.Transition)
	case quantiles()[c.quantile()] == nil:
		var offered []string
		for _, q := range slices.Sorted(maps.Keys(quantiles())) {
			offered = append(offered, fmt.Sprint(q))
		}
		return s.Errorf(path+".quantile", "one of "+strings.Join(offered, ", "), "%v is not a recorded quantile", c.Quantile)
	}
	return nil
}

// perTransition reads one value of the transition that the gate names, in each phase.
func (e evidence) perTransition(read func(result.Transition) reading) finding {
	return e.perPhase(func(p result.Phase) reading {
		for _, t := range p.Transitions {
			if t.Name == e.Transition {
				return read(t)
			}
		}
		return reading{nothing: true}
	})
}

// transitionLatency reads the quantile of a transition. The times of objects that did not finish are unknown. So the
// quantile is between two values: one with the times of these objects so far, and one with infinite times.
// transitionLatency returns the value that decides the gate, or a lower bound if neither does.
func (e evidence) transitionLatency(t result.Transition) reading {
	q, get := e.quantile(), quantiles()[e.quantile()]
	r := quantileOf(t.Latency, t.External, q, get)
	r.detail = fmt.Sprintf("%d objects", t.Began-t.Gone)
	if tooFewFor(t.Latency.Count, q) {
		r.detail += fmt.Sprintf(": too few for the %s (it needs %d), so the value is the maximum", quantileName(q), latency.Needs(q))
	}
	if t.Open == 0 || t.SoFar == nil {
		return r
	}
	r.detail += fmt.Sprintf(", %d of them not %s at the end", t.Open, t.To)
	if q == 1 {
		r.atLeast = true
	}
	if e.boundless || e.op == ">=" || r.atLeast || !e.holds(r.value) {
		r.value, r.external, r.atLeast = ofEnough(*t.SoFar, q, get), nil, true
		if t.ExternalSoFar != nil {
			r.external = new(ofEnough(*t.ExternalSoFar, q, get))
		}
	}
	return r
}

func stillOpen(t result.Transition) reading {
	return reading{value: float64(t.Open), nothing: t.Began == 0, detail: fmt.Sprintf("of %d objects", t.Began)}
}
