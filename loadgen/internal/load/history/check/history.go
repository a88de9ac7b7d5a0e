package check

import (
	"math"
	"time"
)

// History contains all operations of clients and all events of watchers. Times are relative to its start, on one
// monotonic clock.
type History struct {
	Registers  []Register
	Operations []Operation // all operations, in any order; the operations of one client do not overlap
	Watchers   []Watcher
}

// Register is one object, with its state at the start of the history.
type Register struct {
	Name    string
	Version uint64
	Value   uint64
}

// Kind is the kind of an operation: a write, a consistent read or a cached read.
type Kind uint8

const (
	// Write replaces the state at version Expected with Value.
	Write Kind = iota
	// Read is a consistent read. It returns a state that was current at some time between its call and its return.
	Read
	// CachedRead is a read from a cache. It returns the current state or any earlier state.
	CachedRead
)

// String returns the kind's name, as in the evidence files.
func (k Kind) String() string { return [...]string{"write", "read", "cachedRead"}[k] }

// MarshalText returns the same name as String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Outcome says whether the API server executed an operation, and if not, why.
type Outcome uint8

const (
	// OK means that the operation was executed. This includes a read that found no object, whose Version is 0.
	OK Outcome = iota
	// Conflict means that a write was refused because the object has another version than Expected.
	Conflict
	// Absent means that a write was refused because the object does not exist.
	Absent
	// Refused means that the operation was not executed, for a reason that does not depend on the register's state.
	Refused
	// Unknown means that the operation may have been executed, or may still be executed later. Operation.Return is then
	// the time when the client gave up.
	Unknown
)

// String returns the outcome's name, as in the evidence files.
func (o Outcome) String() string {
	return [...]string{"ok", "conflict", "absent", "refused", "unknown"}[o]
}

// MarshalText returns the same name as String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Foreign is the value of a register whose data was not written by this load.
const Foreign = math.MaxUint64

// Operation is one read or write of a client.
type Operation struct {
	Client   int
	Register int // index of the register
	Kind     Kind
	Outcome  Outcome
	// Final marks a read that the load sent after all writes. Such a read returns the final state.
	Final bool
	// Call is the time just before the request was sent. Return is the time just after the response arrived.
	Call, Return time.Duration
	// Expected is the version that a write replaces.
	Expected uint64
	// Value is the value that was written or read. Written values are unique in the history and greater than 0.
	Value uint64
	// Version is the version that a write made or a read returned. It is 0 if the object does not exist.
	Version uint64
}

// Watcher is one client that watched all registers.
type Watcher struct {
	// Start is the version at which the watch began.
	Start   uint64
	Entries []Entry // events and relists, in the order of their arrival
	// Live means that the watch was established at the end of the history, so a missing event is lost, not late.
	Live bool
}

// EntryKind is the kind of an Entry: an event or a relist.
type EntryKind uint8

const (
	// Changed is an event of type ADDED or MODIFIED.
	Changed EntryKind = iota
	// Deleted is an event of type DELETED. The load itself never deletes registers.
	Deleted
	// Bookmark means that all changes up to Version have been sent.
	Bookmark
	// Listed means that the watcher listed again and continued to watch from Version. The listed states are recorded as
	// reads.
	Listed
)

// String returns the kind's name, as in the evidence files.
func (k EntryKind) String() string { return [...]string{"changed", "deleted", "bookmark", "listed"}[k] }

// MarshalText returns the same name as String.
func (k EntryKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Entry is one event of a watcher, or one relist.
type Entry struct {
	Kind     EntryKind
	At       time.Duration
	Register int // index of the register, for Changed and Deleted; -1 if the object is not a register
	Version  uint64
	Value    uint64 // value of the register, only for Changed
}
