package planetest

import "github.com/stormglass/stormglass/loadgen/result"

// WithheldWithinBound reports whether a gate has no data only because the generator ran late: the gate's value is withheld,
// and it is in seconds or within the gate's bound.
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
