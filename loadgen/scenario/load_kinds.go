package scenario

import "slices"

// loadKind describes a kind of load: what is asked about a load by its kind is a
// field of it. The zero value of a field is that of a load of plain requests.
type loadKind struct {
	name string
	// example is a list of loads with one of the kind, for hints.
	example string
	// results that objectives judge its loads by.
	results []LoadResult
	// watches: its rate is that of opening watches, which end after the loads that
	// write to what they watch, with Hold at the end of the run.
	watches bool
	// unpaced: its arrivals are not those of Arrival and Shape.
	unpaced bool
	// traced: its requests are those of a trace, at their times.
	traced bool

	// objects that a load works on unless it says how many; 0: it has none of its own.
	objects int
	// manifests: the objects are of the resources that its operations name, and take
	// namespaces, sizes and a manifest.
	manifests bool
	// namespaces: it takes namespaces, also without objects of its own.
	namespaces bool
	// fixed refuses an Operation in the load. operations are its own instead;
	// none: what it writes belongs to the load that it names.
	fixed      *refusal
	operations []Operation

	// fields that loads of the kind take and not all others do, with whether the load
	// sets them; not those of its objects.
	fields func(*Load) []field
	// defaults of those fields; nil: none.
	defaults func(*Load)
	// validate checks what all loads do not have in common. open are the watches
	// that the load may name, nil in the background.
	validate func(v *validator, path string, l *Load, open map[string]*Load)
	// plausible checks what the load comes to in its time. Nil: what all do.
	plausible func(*forecast, PlacedLoad)
}

type refusal struct{ hint, why string }

func loadKinds() []loadKind {
	return []loadKind{requestsKind(), watchesKind(), changesKind(), historyKind(), streamsKind(), objectsKind(), replayKind(), customKind()}
}

// LoadKinds lists the names of the kinds of load.
func LoadKinds() []string { return loadKindsThat(func(loadKind) bool { return true }) }

func loadKindsThat(hold func(loadKind) bool) []string {
	var names []string
	for _, k := range loadKinds() {
		if hold(k) {
			names = append(names, k.name)
		}
	}
	return names
}

func (l *Load) kind() loadKind {
	all := loadKinds()
	if i := slices.IndexFunc(all, func(k loadKind) bool { return k.name == l.Kind }); i >= 0 {
		return all[i]
	}
	return loadKind{}
}

// LoadResult is a sort of result that objectives judge loads by; empty is none.
type LoadResult string

// The results that loads give.
const (
	RequestResults  LoadResult = "requests"
	WatchResults    LoadResult = "watches"    // of opening and holding watches
	DeliveryResults LoadResult = "deliveries" // of what a load writes, by the watches that it names
	HistoryResults  LoadResult = "history"
	ReplayResults   LoadResult = "replay"
)

// Results are those that the load gives, each under the name of a load.
func (l *Load) Results() map[LoadResult]string {
	all := map[LoadResult]string{}
	for _, r := range l.kind().results {
		all[r] = l.Name
		if r == DeliveryResults {
			all[r] = l.Watches
		}
	}
	return all
}

// LoadExample is a list of loads, in YAML, that give a result.
func LoadExample(r LoadResult) string {
	for _, k := range loadKinds() {
		if slices.Contains(k.results, r) {
			return k.example
		}
	}
	return ""
}

// OpensWatches reports whether the load's rate is that of opening watches, which end
// after the loads that write to what they watch.
func (l *Load) OpensWatches() bool { return l.kind().watches }

// Operations are what the load does, or what its watches watch. Of a load that
// writes the objects of another there are none.
func (l *Load) Operations() []Operation {
	switch k := l.kind(); {
	case k.fixed != nil:
		return k.operations
	case len(l.Mix) > 0:
		return l.Mix
	}
	return []Operation{l.Operation}
}
