package planetest

import "github.com/stormglass/stormglass/loadgen/result"

// WithheldWithinBound reports whether a gate has no data only because the generator
// ran late: its value is withheld, and is a time or within the bound.
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
