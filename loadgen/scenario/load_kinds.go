package scenario

import "slices"

// loadKind describes a kind of load. Its fields hold all properties that depend on the kind. Their zero values describe
// a load of plain requests.
type loadKind struct {
	name string
	// example is a list with one load of the kind, in YAML, for hints.
	example string
	// results lists the kinds of result that loads of the kind produce, for objectives.
	results []LoadResult
	// watches is true if the load opens watches at Rate. The watches end after the loads that write to the watched
	// objects. With Hold, they end with the run.
	watches bool
	// recorded is true if the load sends the requests of a recording at their recorded times.
	recorded bool

	// objects is the default number of objects that the load creates to work on; 0 if it creates none.
	objects int
	// manifests is true if the load creates objects of its operations' resources, and so accepts the fields for their
	// namespaces, sizes and manifest.
	manifests bool
	// namespaces is true if the load accepts namespaces even if it creates no objects.
	namespaces bool
	// fixed says why the load does not accept an Operation; nil if it accepts one. If fixed is set, the field
	// operations lists the load's own operations. Kinds such as changes and streams have none.
	fixed      *refusal
	operations []Operation

	// fields lists the fields that this kind accepts and some other kinds do not, and whether the load sets them. It
	// omits fields that describe the load's objects.
	fields func(*Load) []field
	// defaults sets the default values of the fields that the function `fields` returns. It may be nil.
	defaults func(*Load)
	// validate checks the rules of this kind. `open` holds the watch loads to which the load may refer. It is nil for a
	// background load.
	validate func(v *validator, path string, l *Load, open map[string]*Load)
}

type refusal struct{ hint, why string }

func loadKinds() []loadKind {
	return []loadKind{requestsKind(), watchesKind(), changesKind(), historyKind(), streamsKind(), objectsKind(), replayKind(), customKind()}
}

// LoadKinds lists the names of all kinds of load.
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

// LoadResult is a kind of result that a load produces and objectives judge. Empty means no result.
type LoadResult string

// The values of LoadResult.
const (
	RequestResults  LoadResult = "requests"
	WatchResults    LoadResult = "watches"    // results of opening and holding watches
	DeliveryResults LoadResult = "deliveries" // deliveries of the load's writes to the watches that it names
	HistoryResults  LoadResult = "history"
	ReplayResults   LoadResult = "replay"
)

// Results lists the kinds of result that the load produces, each with the name of the load under which the run reports
// it.
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

// LoadExample returns an example, in YAML, of a list of loads that have the given result.
func LoadExample(r LoadResult) string {
	for _, k := range loadKinds() {
		if slices.Contains(k.results, r) {
			return k.example
		}
	}
	return ""
}

// OpensWatches reports whether the load opens watches at Rate. The watches end after the loads that write to the
// watched objects.
func (l *Load) OpensWatches() bool { return l.kind().watches }

// Operations lists the operations of the load. For watches, the only operation names the watched objects. The list is
// empty for kinds without operations, such as changes, streams and replay.
func (l *Load) Operations() []Operation {
	switch k := l.kind(); {
	case k.fixed != nil:
		return k.operations
	case len(l.Mix) > 0:
		return l.Mix
	}
	return []Operation{l.Operation}
}
