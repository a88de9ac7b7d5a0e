package control

import (
	"slices"
	"strings"
	"time"
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

	// Silences is true if its components do not answer scrapes while it is in force.
	// Scrapes go straight to a component, not over its links.
	Silences bool
	// Isolates is true if schedulers and controller managers may not answer scrapes
	// either: they ask an API server who it is that asks them.
	Isolates bool
	// ReachesEtcd is true if etcd may fail its clients under the fault though it is on
	// none of its members.
	ReachesEtcd bool

	// OfNodes marks a fault of simulated nodes, which the supervisor does not run.
	OfNodes bool
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

// kindNames names the kinds that are wanted.
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
