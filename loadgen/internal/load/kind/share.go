package kind

import (
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Divides reports whether loads of a kind are divided among the workers. Three kinds are not: one process must order all
// operations of a history, the requests of a replay depend on earlier requests, and a custom load is code in the
// program that runs the scenario.
func Divides(kind string) bool {
	return slices.Contains([]string{"requests", "watches", "changes", "objects", "streams"}, kind)
}

// shared returns the load with its numeric limits divided by the number of workers. A positive limit stays at least 1.
func shared(at plan.Load, s load.Share) plan.Load {
	if s.Whole() {
		return at
	}
	l := *at.Load
	for _, n := range []*int{&l.MaxInFlight, &l.Connections} {
		*n = max(s.Part(*n), min(*n, 1))
	}
	at.PlacedLoad.Load = &l
	return at
}

// MaxWorkers returns the largest number of workers among which a load can be divided, and a description of the field
// that sets this maximum. `most` is 0 if there is no maximum, or if the load cannot be divided.
func MaxWorkers(l *scenario.Load) (most int, of string) {
	least := func(n int, what string) {
		if most == 0 || n < most {
			most, of = n, what
		}
	}
	if !Divides(l.Kind) {
		return 0, ""
	}
	if l.OpensWatches() {
		least(l.Count, "watches (count)")
		return most, of
	}
	least(l.MaxInFlight, "requests in flight (maxInFlight)")
	// Two workers cannot change the same object, so each needs its own objects.
	for _, o := range l.Operations() {
		takes := o.Verb == "update" || o.Verb == "delete" || o.Verb == "create" && o.Subresource == "eviction"
		if l.Kind == "requests" && takes && l.OwnObjects(o) {
			least(l.Objects, "objects (objects) that are updated or deleted")
		}
	}
	return most, of
}
