package capacity

import (
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// growth is how much of the requests that come may stay in flight.
const growth = `sum(deriv(stormglass_requests_in_flight[$window])) / sum(rate(stormglass_requests_total[$window]))`

// The bounds of a trial's own gates.
const (
	leastAchieved = "99%"
	mostUnsent    = "0%"
	mostGrowth    = "1%"
)

// addGates makes the gates of a trial of those of a scenario: a p99 has to hold with 99% confidence where there are
// requests enough to tell, and of requests that are due 99% are answered, all are sent, and they do not pile up.
func addGates(s *scenario.Scenario) {
	loads := slices.DeleteFunc(s.Loads(), func(l scenario.PlacedLoad) bool { return l.Kind != "requests" })
	if len(loads) == 0 {
		return
	}
	s.Gates = slices.Clone(s.Gates)
	var held []string // phases in which the load has to hold
	for i := range s.Gates {
		g := &s.Gates[i]
		if g.Objective != "request-latency" {
			continue
		}
		if _, enough := latency.AllowedOver(int64(0.9 * fewest(s, *g, loads))); enough {
			g.Objective = "request-latency-upper"
		}
		for _, name := range g.Over {
			if !slices.Contains(held, name) {
				held = append(held, name)
			}
		}
	}
	if len(held) == 0 {
		held = s.PhaseNames()[len(s.Phases)-1:]
	}
	for _, g := range []scenario.Gate{
		{Name: "achieved", Objective: "achieved", Min: bound(leastAchieved)},
		{Name: "all-sent", Objective: "unsent", Max: bound(mostUnsent)},
		{Name: "in-flight-steady", Expr: growth, Max: bound(mostGrowth)},
	} {
		taken := slices.ContainsFunc(s.Gates, func(o scenario.Gate) bool {
			return o.Name == g.Name || g.Objective != "" && o.Objective == g.Objective && o.Load == ""
		})
		if !taken {
			g.Over = held
			s.Gates = append(s.Gates, g)
		}
	}
}

// fewest are the requests that come in the phase of a gate and to the load of it that have the fewest.
func fewest(s *scenario.Scenario, g scenario.Gate, loads []scenario.PlacedLoad) float64 {
	least := 0.0
	for _, l := range loads {
		if g.Load != "" && l.Name != g.Load {
			continue
		}
		for _, name := range g.Over {
			if l.Phase != "" && l.Phase != name {
				continue
			}
			n := float64(l.Rate) * s.Phase(name).For.D().Seconds()
			if least == 0 || n < least {
				least = n
			}
		}
	}
	return least
}

func bound(text string) *scenario.Bound {
	b := new(scenario.Bound)
	if err := b.UnmarshalText([]byte(text)); err != nil {
		panic(err) // a constant
	}
	return b
}
