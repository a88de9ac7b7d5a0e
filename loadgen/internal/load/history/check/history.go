package check

import (
	"math"
	"time"
)

// History holds all observations. Times are since its start, on one monotonic clock.
type History struct {
	Registers  []Register
	Operations []Operation // in any order; a client's operations do not overlap
	Watchers   []Watcher
}

// Register is one object, in the state in which the history begins.
type Register struct {
	Name    string
	Version uint64
	Value   uint64
}

// Kind is the kind of an operation.
type Kind uint8

const (
	// Write replaces the state at version Expected with Value.
	Write Kind = iota
	// Read is a consistent read: it returns a state that was current between its call and its return.
	Read
	// CachedRead returns the current state or any earlier one.
	CachedRead
)

// String returns the kind's name in the evidence.
func (k Kind) String() string { return [...]string{"write", "read", "cachedRead"}[k] }

// MarshalText writes the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Outcome is the outcome of an operation.
type Outcome uint8

const (
	// OK: the operation was executed. A read of a missing object has version 0.
	OK Outcome = iota
	// Conflict: a write was refused because the version was not the expected one.
	Conflict
	// Absent: a write was refused because the object does not exist.
	Absent
	// Refused: the operation was not executed, for a reason that reveals nothing about the register.
	Refused
	// Unknown: the operation may have been executed, or may still be executed later. Return is when its client gave up.
	Unknown
)

// String returns the outcome's name in the evidence.
func (o Outcome) String() string {
	return [...]string{"ok", "conflict", "absent", "refused", "unknown"}[o]
}

// MarshalText writes the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Foreign is the value of an object that does not hold a register's value.
const Foreign = math.MaxUint64

// Operation is one call of a client.
type Operation struct {
	Client   int
	Register int // index
	Kind     Kind
	Outcome  Outcome
	// Final reads follow all writes and return the final state.
	Final bool
	// Call is the time just before the request was sent, and Return the time just after its answer arrived.
	Call, Return time.Duration
	// Expected is the version that a write replaces.
	Expected uint64
	// Value is the value that was written or read. Written values are unique in the history and greater than 0.
	Value uint64
	// Version is the version that a write made or that was read; 0 if the object does not exist.
	Version uint64
}

// Watcher is one client that watched all registers.
type Watcher struct {
	// Start is the version from which it watched.
	Start   uint64
	Entries []Entry // in the order of their arrival
	// Live means that the watch was established at the end, so that missing events will never arrive.
	Live bool
}

// EntryKind is the kind of an entry in a watcher's log.
type EntryKind uint8

const (
	// Changed is an event ADDED or MODIFIED.
	Changed EntryKind = iota
	// Deleted is an event DELETED. The load never deletes registers.
	Deleted
	// Bookmark is a bookmark: all changes up to Version have been sent.
	Bookmark
	// Listed means that the watcher listed again and continued to watch from Version. The listed states are recorded as reads.
	Listed
)

// String returns the kind's name in the evidence.
func (k EntryKind) String() string { return [...]string{"changed", "deleted", "bookmark", "listed"}[k] }

// MarshalText writes the name.
func (k EntryKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Entry is one observation of a watcher.
type Entry struct {
	Kind     EntryKind
	At       time.Duration
	Register int // for Changed and Deleted; -1 if the object is not a register
	Version  uint64
	Value    uint64 // for Changed
}
