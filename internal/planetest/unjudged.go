package planetest

import "github.com/stormglass/stormglass/loadgen/result"

// Starved reports whether other programs disturbed the run: the load generator ran late, or the run reports a busy
// machine.
func Starved(r result.Result) bool {
	return len(r.Measurements.Generator.Saturated) > 0 || len(r.BusyMachine) > 0
}

// Unjudged reports whether a gate has no data only because the machine was too busy to measure. In a starved run, this
// is true for every gate without data. In other runs, the result must contain the gate's value as Withheld, and not as
// a lower bound. The value must also be in seconds or meet the gate's bound.
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
