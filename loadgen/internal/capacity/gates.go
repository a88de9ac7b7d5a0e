package capacity

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// growth is the PromQL for the fraction of a load's requests that pile up in flight. It scales the fraction down for
// fewer than 1,000 requests, because random variation alone could exceed the bound.
const growth = `sum(deriv(stormglass_requests_in_flight{load="$load"}[$window])) / sum(rate(stormglass_requests_total{load="$load"}[$window])) * clamp_max(sum(increase(stormglass_requests_total{load="$load"}[$window])) / 1000, 1)`

// Bounds of the gates that addGates adds.
const (
	leastAchieved = "99%"
	maxUnsent     = "0%"
	maxGrowth     = "2%"
)

// addGates adds the gates of a trial to the scenario: 99% of the due requests must succeed, the generator must send all
// requests, and requests must not pile up. It also changes gates on a p99 so that they must hold with 99% confidence,
// if there are enough requests to decide that.
func addGates(s *scenario.Scenario) {
	loads := slices.DeleteFunc(s.Loads(), func(l scenario.PlacedLoad) bool { return l.Kind != "requests" })
	if len(loads) == 0 {
		return
	}
	s.Gates = slices.Clone(s.Gates)
	var held []string // phases in which the gates must pass
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
		held = requestPhases(s, loads)
	}
	var achieved, steady []scenario.Gate
	for _, l := range loads { // judge each load separately, because the failure of a small load would hardly change the sum
		if l.MinAchieved == nil && s.MinAchieved == nil {
			l.MinAchieved = bound("0%") // the gates below judge the achieved share, and only in the phases in `held`
		}
		of, over := "", held
		if len(loads) > 1 {
			of = "-" + l.Name
		}
		if l.Phase != "" {
			over = slices.DeleteFunc(slices.Clone(held), func(phase string) bool { return phase != l.Phase })
		}
		achieved = append(achieved, scenario.Gate{Name: "achieved" + of, Objective: "achieved", Load: l.Name, Min: bound(leastAchieved), Over: over})
		steady = append(steady, scenario.Gate{Name: "in-flight-steady" + of, Expr: strings.ReplaceAll(growth, "$load", l.Name), Max: bound(maxGrowth), Over: over})
	}
	sent := scenario.Gate{Name: "all-sent", Objective: "unsent", Max: bound(maxUnsent), Over: held}
	for _, g := range slices.Concat(achieved, []scenario.Gate{sent}, steady) {
		if len(g.Over) == 0 || asksAlready(s.Gates, g, len(loads) == 1) {
			continue
		}
		for slices.ContainsFunc(s.Gates, func(o scenario.Gate) bool { return o.Name == g.Name }) {
			g.Name += "-too"
		}
		s.Gates = append(s.Gates, g)
	}
}

// asksAlready reports whether one of gates makes g redundant: a gate that judges the same objective of the same load in
// all phases of g and is at least as strict. oneLoad means that a gate without a load judges only the load of g.
func asksAlready(gates []scenario.Gate, g scenario.Gate, oneLoad bool) bool {
	return g.Objective != "" && slices.ContainsFunc(gates, func(o scenario.Gate) bool {
		covers := !slices.ContainsFunc(g.Over, func(name string) bool { return !slices.Contains(o.Over, name) })
		strict := g.Min != nil && o.Min != nil && o.Min.Value >= g.Min.Value || g.Max != nil && o.Max != nil && o.Max.Value <= g.Max.Value
		return o.Objective == g.Objective && (o.Load == g.Load || o.Load == "" && oneLoad) && len(o.Variants) == 0 && covers && strict
	})
}

// requestPhases returns the phases with request loads, or only the last phase if a request load runs in every phase.
func requestPhases(s *scenario.Scenario, loads []scenario.PlacedLoad) (names []string) {
	for _, name := range s.PhaseNames() {
		if slices.ContainsFunc(loads, func(l scenario.PlacedLoad) bool { return l.Phase == name }) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || slices.ContainsFunc(loads, func(l scenario.PlacedLoad) bool { return l.Phase == "" }) {
		return s.PhaseNames()[len(s.Phases)-1:]
	}
	return names
}

// minShare returns the fraction of a load's requests in the smallest group that gates judge separately: the requests
// of one tenant with one operation of the mix.
func minShare(l *scenario.Load) float64 {
	var mix, tenants []float64
	for _, o := range l.Mix {
		mix = append(mix, o.Weight)
	}
	for _, t := range l.Tenants {
		tenants = append(tenants, t.Share)
	}
	return smallest(mix) * smallest(tenants)
}

// smallest returns the smallest weight as a fraction of the sum of all weights, or 1 without weights. An omitted weight
// counts as 1.
func smallest(weights []float64) float64 {
	if len(weights) == 0 {
		return 1
	}
	sum, least := 0.0, math.Inf(1)
	for _, w := range weights {
		w = cmp.Or(w, 1)
		sum, least = sum+w, min(least, w)
	}
	return least / sum
}

// fewest returns the number of requests in the smallest group that a gate judges separately: the requests of one phase,
// load, operation and tenant. It returns 0 if there are no requests, or if a phase ends by a condition.
func fewest(s *scenario.Scenario, g scenario.Gate, loads []scenario.PlacedLoad) float64 {
	least := math.Inf(1)
	for _, l := range loads {
		if g.Load != "" && l.Name != g.Load {
			continue
		}
		for _, name := range g.Over {
			if l.Phase != "" && l.Phase != name {
				continue
			}
			least = min(least, float64(l.Rate)*minShare(l.Load)*s.Phase(name).For.D().Seconds())
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

func bound(text string) *scenario.Bound {
	b := new(scenario.Bound)
	if err := b.UnmarshalText([]byte(text)); err != nil {
		panic(err) // text is a constant
	}
	return b
}
