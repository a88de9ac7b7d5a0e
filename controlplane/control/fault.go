package control

import (
	"slices"
	"strings"
	"time"
)

// Fault describes one fault.
type Fault struct {
	Kind string `json:"kind"`
	// Components it is about, by name ("etcd-0") or by role: a kind (all of them), or a kind and
	// "-leader" or "-follower", which the supervisor looks up when the fault begins.
	Components []string `json:"components,omitempty"`
	// Peers are the other ends of the links of a networkDelay or partition.
	// Empty: all that the components have.
	Peers []string `json:"peers,omitempty"`
	// For is its length. Zero: until it is cleared.
	For time.Duration `json:"forNanoseconds,omitempty"`
	// Throttle is how many requests a second a service answers; zero: all.
	Throttle float64 `json:"throttle,omitempty"`
	// Delay of an fsync, of data on a link in each direction, or of a webhook's answer.
	Delay time.Duration `json:"delayNanoseconds,omitempty"`
	// Jitter is added to or taken from Delay, evenly drawn up to so much.
	Jitter time.Duration `json:"jitterNanoseconds,omitempty"`
	// Files that a slowFsync is about: "wal" (the default) or "all".
	Files string `json:"files,omitempty"`
	// Limit of open files of a descriptorLimit.
	Limit uint64 `json:"limit,omitempty"`
	// Writers of a diskContention: each writes Size bytes and fsyncs, over and
	// over. Zero: 4 writers of 1 MiB.
	Writers int   `json:"writers,omitempty"`
	Size    int64 `json:"sizeBytes,omitempty"`
	// Quota of an etcdQuota, in bytes.
	Quota int64 `json:"quotaBytes,omitempty"`
	// Resource whose creation a webhook is asked about, as "pods" or
	// "deployments.apps". Fails makes it answer 500; Ignore is failurePolicy
	// Ignore (fail open) instead of Fail. TimeoutSeconds is the API server's
	// patience, 1 to 30; zero: upstream's 10.
	Resource       string `json:"resource,omitempty"`
	Fails          bool   `json:"fails,omitempty"`
	Ignore         bool   `json:"ignore,omitempty"`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty"`
	// Webhooks: so many, each with the same answers; zero: one. Mutates makes them mutating
	// ones, which are asked one after another and add an annotation each; Reinvoke is their
	// reinvocationPolicy IfNeeded: asked again when a later one has changed the object.
	Webhooks int  `json:"webhooks,omitempty"`
	Mutates  bool `json:"mutates,omitempty"`
	Reinvoke bool `json:"reinvoke,omitempty"`
	// To is the minor version of an upgrade or downgrade: "1.37".
	To string `json:"to,omitempty"`
	// Seed of its random numbers.
	Seed int64 `json:"seed,omitempty"`
}

func (f Fault) kind() FaultKind {
	k, _ := FaultKindOf(f.Kind)
	return k
}

// Momentary reports whether the fault has no length: it ends when it has run its course.
func (f Fault) Momentary() bool { return f.kind().Momentary }

// CourseEnds says when a momentary fault ends.
func (f Fault) CourseEnds() string {
	if f.kind().Process == ProcessEnded {
		return "until all has started again"
	}
	return "until it is done"
}

// Selectors say which components the fault is on: those that it names, or all of some kinds.
func (f Fault) Selectors() []string {
	kind := f.kind()
	switch {
	case len(kind.OnAll) > 0:
		return kind.OnAll
	case len(f.Components) == 0 && kind.AllByDefault:
		return kind.On
	}
	return f.Components
}

// FaultStatus is a fault that was begun.
type FaultStatus struct {
	// ID is unique in the plane's life: "1", "2", ...
	ID string `json:"id"`
	Fault
	// On are the components it hit, by name: roles as they were looked up.
	On []string `json:"on,omitempty"`
	// Asked is the time of the request, Active when the fault was in force,
	// Ends when it is due to end (zero: when it is cleared), Ended when all of
	// it was undone (zero: it is not). A fault with Ended zero and an
	// Error could not be undone: clearing it tries again.
	Asked  time.Time `json:"asked"`
	Active time.Time `json:"active"`
	Ends   time.Time `json:"ends,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	// Error is the reason why it could not be undone.
	Error string `json:"error,omitempty"`
	// Lost is the reason why it was not in force all its time on all its components: a
	// neighbour ended by itself, or a component's new process could not be slowed or
	// limited as the one before.
	Lost string `json:"lost,omitempty"`
}

// Event is an event of a plane, as its supervisor recorded it.
type Event struct {
	// Seq counts events of the plane from 1.
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	// Kind is "fault-begin", "fault-end", "exit", "start", "ready" (of one
	// component after a restart), "etcd-leader", "lease" (a leader-elected
	// component has got its lease) or "stopping" (the whole plane).
	Kind string `json:"kind"`
	// Expected marks a requested exit, by a fault that ends processes for example: the
	// component did not end by itself.
	Expected bool `json:"expected,omitempty"`
	// Handover marks the exit of a component that gave its lease to a candidate that the API servers prefer, under
	// the feature gate CoordinatedLeaderElection: it is started again.
	Handover bool `json:"handover,omitempty"`
	// Version is that of the component that was started, as in Component.
	Version string `json:"version,omitempty"`
	// PID of the process that was started; 0: none was.
	PID int `json:"pid,omitempty"`
	// Component it is about, by name; empty for faults of several.
	Component string `json:"component,omitempty"`
	// Detail is for a person.
	Detail string `json:"detail,omitempty"`
}

// The kinds of Event.
const (
	EventFaultBegin = "fault-begin"
	EventFaultEnd   = "fault-end"
	EventExit       = "exit"
	EventStart      = "start"
	EventReady      = "ready"
	EventEtcdLeader = "etcd-leader"
	EventLease      = "lease"
	EventStopping   = "stopping" // the plane begins to stop, for the reason in Detail
)

// FaultKind describes one kind of fault to the supervisor, the command line,
// scenarios and the judge. The supervisor's mechanism for it is in package fault.
type FaultKind struct {
	// Name is the kind as scenarios write it: "slowFsync".
	Name string
	// Short describes the fault in a line, Long how it works and where it shows;
	// Example holds command lines. Faults of nodes have no command: Short only.
	Short, Long, Example string

	// Takes lists the fields of the fault, by the names that a scenario gives them,
	// Needs those that are required. FaultFields holds their bounds.
	Takes, Needs []string
	// Check finds a combination of fields that makes no fault; nil: there is none.
	Check func(Fault) (Problem, bool)
	// Delays names what waits for the field delay: "each call".
	Delays string
	// Momentary faults have no length: they end when they have run their course.
	Momentary bool
	// Lead is the time that the fault takes to begin: a run requests it that much early.
	Lead time.Duration

	// On lists the kinds of component that the fault may name; empty: all.
	On []string
	// AllByDefault is true if it is on all components of On where it names none.
	AllByDefault bool
	// OnAll lists the kinds of component that the fault is always on, where it names none.
	OnAll []string
	// Process is the fault's effect on its components' processes.
	Process ProcessEffect
	// PartOfEach begins the name of a part of each component that one such fault
	// has alone: "the fsync of". Part names such a part of the plane.
	PartOfEach string
	Part       func(Fault) string
	// Links is true if it works on its components' links, each alone.
	Links bool
	// Whole is true if it needs the whole plane: no other fault may be in force.
	Whole bool

	// Silences is true if its components do not answer scrapes while it is in force.
	Silences bool
	// Isolates is true if schedulers and controller managers may not answer scrapes
	// either: they ask an API server who it is that asks them.
	Isolates bool
	// ReachesEtcd is true if etcd may fail its clients under the fault though it is on
	// none of its members.
	ReachesEtcd bool

	// OfNodes marks a fault of simulated nodes, which the supervisor does not run.
	OfNodes bool
	// OfCloud marks a fault of nodes that the simulated cloud takes part in.
	OfCloud bool
	// Adds is true if it registers the nodes that were left for later.
	Adds bool
	// SilencesNodes is true if nodes send nothing after it; Announced, that they
	// report themselves not Ready first.
	SilencesNodes, Announced bool
	// Recovers is true if it ends the faults of nodes before it.
	Recovers bool
}

// ProcessEffect is a fault's effect on a process. A fault that stops or ends a
// process excludes all others of it: their state in the process would be lost, or
// not answer.
type ProcessEffect int

// The effects, from none to the end of the process.
const (
	ProcessUntouched ProcessEffect = iota
	ProcessAltered                 // something in it is changed, and lost with it
	ProcessStopped                 // it does not run, but lives on
	ProcessEnded                   // the supervisor ends it
)

// Command is the kind as the command line writes it: "slow-fsync".
func (k FaultKind) Command() string {
	var b strings.Builder
	for _, r := range k.Name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Has reports whether the kind takes a field.
func (k FaultKind) Has(field string) bool { return slices.Contains(k.Takes, field) }

// OfMembers reports whether the kind is for members of etcd only.
func (k FaultKind) OfMembers() bool { return slices.Equal(k.On, []string{KindEtcd}) }

// FaultKindOf is the kind of a name; ok is false if there is none.
func FaultKindOf(name string) (k FaultKind, ok bool) {
	table := FaultTable()
	i := slices.IndexFunc(table, func(k FaultKind) bool { return k.Name == name })
	if i < 0 {
		return FaultKind{Name: name}, false
	}
	return table[i], true
}

// FaultKinds names the kinds that a bundled plane can inject.
func FaultKinds() []string { return kindNames(func(k FaultKind) bool { return !k.OfNodes }) }

// NodeFaultKinds names the kinds that simulated nodes have.
func NodeFaultKinds() []string { return kindNames(func(k FaultKind) bool { return k.OfNodes }) }

func kindNames(want func(FaultKind) bool) []string {
	var all []string
	for _, k := range FaultTable() {
		if want(k) {
			all = append(all, k.Name)
		}
	}
	return all
}

// EndsNodeFaults reports whether a kind of fault ends those of simulated nodes before it.
func EndsNodeFaults(kind string) bool {
	k, _ := FaultKindOf(kind)
	return k.Recovers
}
