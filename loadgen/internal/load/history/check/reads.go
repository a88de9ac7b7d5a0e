package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
)

// backwards finds consistent reads that returned an older version than the client knew before the read. It also counts
// cached reads that returned an older version, which Kubernetes allows.
func backwards(s *states) (wrong []result.Violation, cachedOld int64) {
	type pair struct{ client, register int }
	known := map[pair]uint64{}
	byCall := func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) }
	for _, o := range slices.SortedStableFunc(slices.Values(s.h.Operations), byCall) {
		if o.Outcome != OK {
			continue
		}
		at := pair{o.Client, o.Register}
		switch {
		case o.Version >= known[at] || o.Kind == Write: // search checks the versions of writes
		case o.Kind == CachedRead:
			cachedOld++
		default:
			wrong = append(wrong, result.Violation{
				Kind: result.BackwardsRead, Register: s.name(o.Register), Client: &o.Client, Version: o.Version, AtSecond: o.Return.Seconds(),
				Detail: fmt.Sprintf("a consistent read returned version %d to a client that already knew version %d", o.Version, known[at]),
			})
		}
		known[at] = max(known[at], o.Version)
	}
	return wrong, cachedOld
}
