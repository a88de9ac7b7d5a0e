package check

import (
	"math"
	"time"
)

// History holds all observations. Times are since its start, on one monotonic clock.
type History struct {
	Registers  []Register
	Operations []Operation // in any order; those of one client one after another
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
	// Write replaces the state of version Expected by Value.
	Write Kind = iota
	// Read is consistent: it gives a state between its call and its return.
	Read
	// CachedRead gives any state that there was.
	CachedRead
)

// String is the kind's name in the evidence.
func (k Kind) String() string { return [...]string{"write", "read", "cachedRead"}[k] }

// MarshalText writes the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Outcome is the outcome of an operation.
type Outcome uint8

const (
	// OK: it was executed. A read of an object that is not there has version 0.
	OK Outcome = iota
	// Conflict is a write refused for another version than the expected one.
	Conflict
	// Absent is a write that was refused because there is no such object.
	Absent
	// Refused: not executed, for reasons that tell nothing of the register.
	Refused
	// Unknown: it may have been executed, or may yet. Return is when its client gave up.
	Unknown
)

// String is the outcome's name in the evidence.
func (o Outcome) String() string {
	return [...]string{"ok", "conflict", "absent", "refused", "unknown"}[o]
}

// MarshalText writes the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Foreign is the value of an object whose value is none.
const Foreign = math.MaxUint64

// Operation is one call of a client.
type Operation struct {
	Client   int
	Register int // index
	Kind     Kind
	Outcome  Outcome
	// Final reads come after all writes, and tell the final state.
	Final bool
	// Call and Return are just before the request and just after its answer.
	Call, Return time.Duration
	// Expected is the version that a write replaces.
	Expected uint64
	// Value written or read. Those of writes are unique in the history and over 0.
	Value uint64
	// Version that a write made, or that was read; 0: there is no such object.
	Version uint64
}

// Watcher is one client that watched all registers.
type Watcher struct {
	// Start is the version from which it watched.
	Start   uint64
	Entries []Entry // in the order of their arrival
	// Live: the watch was established at the end: what has not come never will.
	Live bool
}

// EntryKind is the kind of an entry in a watcher's log.
type EntryKind uint8

const (
	// Changed is an event ADDED or MODIFIED.
	Changed EntryKind = iota
	// Deleted is an event DELETED. The load never deletes registers.
	Deleted
	// Bookmark: all changes up to Version have been sent.
	Bookmark
	// Listed: the watcher listed again and watched on from Version. The states are among the reads.
	Listed
)

// String is the kind's name in the evidence.
func (k EntryKind) String() string { return [...]string{"changed", "deleted", "bookmark", "listed"}[k] }

// MarshalText writes the name.
func (k EntryKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Entry is one thing that a watcher was told.
type Entry struct {
	Kind     EntryKind
	At       time.Duration
	Register int // of Changed and Deleted; -1: none of the registers
	Version  uint64
	Value    uint64 // of Changed
}
