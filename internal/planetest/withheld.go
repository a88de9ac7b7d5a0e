package planetest

import "github.com/stormglass/stormglass/loadgen/result"

// WithheldWithinBound reports whether a gate has no data only because the load generator ran late. That is the case if
// the gate's value is withheld, and is either in seconds or within the gate's bound.
func WithheldWithinBound(g result.Gate) bool {
	if g.Verdict != result.NoData || g.Withheld == nil || g.AtLeast {
		return false
	}
	within := *g.Withheld <= g.Bound
	if g.Op == ">=" {
		within = *g.Withheld >= g.Bound
	}
	return g.Unit == "seconds" || within
}
