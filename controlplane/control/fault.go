package control

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Fault describes one fault. Kind determines which of the other fields apply; see FaultKind.Takes.
type Fault struct {
	Kind string `json:"kind"`
	// Components are the affected components: names ("etcd-0"), kinds (all components of the kind), or kinds with a
	// role ("etcd-leader", "etcd-follower"). The supervisor resolves roles when the fault begins.
	Components []string `json:"components,omitempty"`
	// Peers are the components at the other end of the links that a networkDelay or partition affects. Empty means all
	// links of the components.
	Peers []string `json:"peers,omitempty"`
	// For is the length of the fault. Zero means that the fault lasts until it is cleared.
	For time.Duration `json:"forNanoseconds,omitempty"`
	// Throttle is the number of requests per second that a service accepts. Zero means unlimited.
	Throttle float64 `json:"throttle,omitempty"`
	// Delay is the delay of an fsync, of data in each direction of a link, or of each response of a webhook or service.
	Delay time.Duration `json:"delayNanoseconds,omitempty"`
	// Jitter is the maximum random change of Delay, up or down, with a uniform distribution.
	Jitter time.Duration `json:"jitterNanoseconds,omitempty"`
	// Files are the files that a slowFsync affects: "wal" (default) or "all".
	Files string `json:"files,omitempty"`
	// Limit is the maximum number of open files that a descriptorLimit sets.
	Limit uint64 `json:"limit,omitempty"`
	// Writers is the number of writers of a diskContention. Each repeatedly writes Size bytes
	// and fsyncs. Zero means 4 writers of 1 MiB.
	Writers int   `json:"writers,omitempty"`
	Size    int64 `json:"sizeBytes,omitempty"`
	// Quota is the backend quota that an etcdQuota sets, in bytes.
	Quota int64 `json:"quotaBytes,omitempty"`
	// Resource is the resource whose creation calls a webhook, such as "pods" or "deployments.apps". Fails makes a
	// webhook or service respond with status 500. Ignore sets failurePolicy Ignore (fail open) instead of Fail.
	// TimeoutSeconds is the API server's timeout, 1 to 30. Zero means upstream's default of 10.
	Resource       string `json:"resource,omitempty"`
	Fails          bool   `json:"fails,omitempty"`
	Ignore         bool   `json:"ignore,omitempty"`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty"`
	// Webhooks is the number of webhooks, which all respond in the same way. Zero means one. Mutates makes them
	// mutating: the API server calls them one after another, and each adds an annotation. Reinvoke sets
	// reinvocationPolicy IfNeeded: the API server calls a webhook again if a later one has changed the object.
	Webhooks int  `json:"webhooks,omitempty"`
	Mutates  bool `json:"mutates,omitempty"`
	Reinvoke bool `json:"reinvoke,omitempty"`
	// To is the minor version to which an upgrade or downgrade changes components: "1.37".
	To string `json:"to,omitempty"`
	// Seed is the seed of the fault's random numbers.
	Seed int64 `json:"seed,omitempty"`
}

// Jittered returns delay plus or minus a random time of at most jitter. jitter must not exceed delay.
func Jittered(delay, jitter time.Duration, random *rand.Rand) time.Duration {
	if jitter == 0 {
		return delay
	}
	return delay + time.Duration(random.Int64N(2*int64(jitter)+1)) - jitter
}

func (f Fault) kind() FaultKind {
	k, _ := FaultKindOf(f.Kind)
	return k
}

// Momentary reports whether the fault has no configurable length, because it ends by itself.
func (f Fault) Momentary() bool { return f.kind().Momentary }

// CourseEnds describes when a momentary fault ends, as a phrase for messages: "until it is done".
func (f Fault) CourseEnds() string {
	if f.kind().Process == ProcessEnded {
		return "until all components have started again"
	}
	return "until it is done"
}

// Selectors returns the selectors of the components that the fault affects: the components that the fault names, or the
// kinds that it affects by default.
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

// FaultStatus is the status of a fault that a client has requested.
type FaultStatus struct {
	// ID is the fault's number: "1" for the first fault after each start of the plane.
	ID string `json:"id"`
	Fault
	// On lists the names of the affected components, even if the fault selected them by role.
	On []string `json:"on,omitempty"`
	// Asked is the time of the request, and Active the time at which the fault became active. Ends is the time at which
	// the fault is due to end; zero means that the fault lasts until it is cleared. Ended is the time at which the
	// supervisor had completely undone the fault; zero means not yet. If Error is set and Ended is zero, undoing
	// failed: clear the fault to try again.
	Asked  time.Time `json:"asked"`
	Active time.Time `json:"active"`
	Ends   time.Time `json:"ends,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	// Error is the reason why the fault could not be undone.
	Error string `json:"error,omitempty"`
	// Lost is the reason why the fault was not active on all components for its whole length. For example, the process
	// that writes for a diskContention exited, or a component's new process could not be slowed or limited like the
	// previous one.
	Lost string `json:"lost,omitempty"`
}

// Event is an event of a plane, as its supervisor recorded it.
type Event struct {
	// Seq counts events of the plane from 1.
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	// Kind is "fault-begin", "fault-end", "exit", "start", "ready" (of one component after a restart), "etcd-leader",
	// "lease" (a leader-elected component has acquired its lease) or "stopping" (the whole plane).
	Kind string `json:"kind"`
	// Expected marks an exit that the supervisor caused, for example to inject a fault. The
	// component did not end by itself.
	Expected bool `json:"expected,omitempty"`
	// Handover marks the exit of a component that handed over its lease to a candidate that the API servers prefer,
	// under the feature gate CoordinatedLeaderElection. The supervisor starts the component again.
	Handover bool `json:"handover,omitempty"`
	// Version is the version of the started component, as in Component.
	Version string `json:"version,omitempty"`
	// PID is the process ID of the started process; 0 if no process was started.
	PID int `json:"pid,omitempty"`
	// Component is the name of the affected component; empty for faults of several components.
	Component string `json:"component,omitempty"`
	// Detail is a description for people.
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

// FaultKind describes one kind of fault to the supervisor, the command line, scenarios and the judge. Package fault
// implements the kinds.
type FaultKind struct {
	// Name is the kind's name in scenarios: "slowFsync".
	Name string
	// Short describes the fault in one line. Long describes how it works and which metrics show it.
	// Example holds command lines. Faults of nodes have no command, and therefore only Short.
	Short, Long, Example string

	// Takes lists the fields of the fault by their names in a scenario, and
	// Needs the required ones. Fault.fields has their bounds.
	Takes, Needs []string
	// Check finds an invalid combination of fields. Nil means that all combinations are valid.
	Check func(Fault) (Problem, bool)
	// Delays names the delayed operation in help texts, such as "each call".
	Delays string
	// Momentary reports whether faults of the kind have no length, because they end by themselves.
	Momentary bool
	// Lead is the time that a fault needs to begin. A run requests the fault this much before the time at which it
	// should begin.
	Lead time.Duration

	// On lists the kinds of component that a request for this fault may name as targets; empty means all kinds.
	On []string
	// AllByDefault reports whether a fault that names no components affects all components of the kinds in On.
	AllByDefault bool
	// OnAll lists the kinds of component that the fault always affects. Such a fault names no components.
	OnAll []string
	// Process is the fault's effect on its components' processes.
	Process ProcessEffect
	// PartOfEach names a part of each affected component that the fault uses exclusively, such as "the fsync of"; the
	// component's name follows. Part returns the name of a part of the plane that the fault uses exclusively.
	PartOfEach string
	Part       func(Fault) string
	// Links reports whether the fault uses each link of its components exclusively.
	Links bool
	// Whole reports whether the fault needs the whole plane. Then no other fault may be active.
	Whole bool

	// Silences is true if the affected components do not respond to scrapes while the fault is active.
	Silences bool
	// Isolates reports whether schedulers and controller managers may also stop responding to scrapes. They
	// authenticate the scraping client through an API server, which may then be unreachable.
	Isolates bool
	// ReachesEtcd reports whether requests to etcd may fail although the fault does not affect etcd members directly.
	ReachesEtcd bool

	// OfNodes marks a fault of simulated nodes. The supervisor does not run it.
	OfNodes bool
	// OfCloud marks a fault of nodes that also affects the simulated cloud.
	OfCloud bool
	// Adds reports whether the fault registers the nodes that the scenario reserves for it (nodes.later).
	Adds bool
	// SilencesNodes reports whether the nodes send no requests after the fault. Announced reports whether they first
	// report that they are not Ready.
	SilencesNodes, Announced bool
	// Recovers reports whether the fault ends earlier faults of nodes.
	Recovers bool
}

// ProcessEffect is a fault's effect on a process. A fault that stops or ends a process excludes all other faults of the
// process, because those faults keep their state in the process.
type ProcessEffect int

// The effects on a process.
const (
	ProcessUntouched ProcessEffect = iota
	ProcessAltered                 // the fault changes state in the process; the change is lost when the process ends
	ProcessStopped                 // the fault stops the process (SIGSTOP), but does not end it
	ProcessEnded                   // the supervisor ends the process
)

// Command returns the kind's name on the command line: "slow-fsync".
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

// Has reports whether faults of the kind have a field with the given name in a scenario.
func (k FaultKind) Has(field string) bool { return slices.Contains(k.Takes, field) }

// OfMembers reports whether the kind affects only etcd members.
func (k FaultKind) OfMembers() bool { return slices.Equal(k.On, []string{KindEtcd}) }

// FaultKindOf returns the fault kind with the given name. ok is false if the name is unknown.
func FaultKindOf(name string) (k FaultKind, ok bool) {
	table := FaultTable()
	i := slices.IndexFunc(table, func(k FaultKind) bool { return k.Name == name })
	if i < 0 {
		return FaultKind{Name: name}, false
	}
	return table[i], true
}

// FaultKinds returns the names of the kinds that a bundled plane can inject.
func FaultKinds() []string { return kindNames(func(k FaultKind) bool { return !k.OfNodes }) }

// NodeFaultKinds returns the names of the kinds for simulated nodes.
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

// EndsNodeFaults reports whether a fault of the given kind ends earlier faults of simulated nodes.
func EndsNodeFaults(kind string) bool {
	k, _ := FaultKindOf(kind)
	return k.Recovers
}
