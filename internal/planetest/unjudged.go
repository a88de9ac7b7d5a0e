package planetest

import "github.com/stormglass/stormglass/loadgen/result"

// Starved reports whether other work on the machine disturbed the run: the load generator ran late, or the run reports a
// busy machine.
func Starved(r result.Result) bool {
	return len(r.Measurements.Generator.Saturated) > 0 || len(r.BusyMachine) > 0
}

// Unjudged reports whether a gate of the run has no data only because the machine was too busy to measure. In a starved run,
// it is true for every gate without data. In any other run, it is true only if the gate's value was withheld and is either in
// seconds or within the gate's bound.
func Unjudged(r result.Result, g result.Gate) bool {
	if g.Verdict != result.NoData {
		return false
	}
	if Starved(r) {
		return true
	}
	if g.Withheld == nil || g.AtLeast {
		return false
	}
	within := *g.Withheld <= g.Bound
	if g.Op == ">=" {
		within = *g.Withheld >= g.Bound
	}
	return g.Unit == "seconds" || within
}
