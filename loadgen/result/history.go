package result

import "time"

// History holds the observations of a load of kind "history" over the whole run, faults
// included, and its checker's verdict: writers, readers and watchers
// over a set of registers (ConfigMaps), each operation with the times of its
// call and its return.
type History struct {
	Load string `json:"load"` // the load's name in the scenario
	// Start is when it began; the seconds of violations count from it.
	Start     time.Time `json:"start"`
	Registers int       `json:"registers"` // ConfigMaps written to and read
	Clients   int       `json:"clients"`   // writers and readers, one connection each
	Watchers  int       `json:"watchers"`  // watches of all registers, one connection each

	Writes HistoryOperations `json:"writes"` // updates with the resourceVersion that they replace
	// Reads are consistent: without a resourceVersion. A list counts as one of
	// each register.
	Reads HistoryOperations `json:"reads"`
	// UnknownHappened of the writes of unknown outcome were seen later: they
	// had happened. The others may or may not have.
	UnknownHappened int64 `json:"unknownHappened"`
	// CachedReads are with resourceVersion=0: the API allows them to be old,
	// and CachedOld of them were older than what their client knew.
	CachedReads HistoryOperations `json:"cachedReads"`
	CachedOld   int64             `json:"cachedOld"` // cached reads older than what their client knew
	// Skipped arrivals found their client still waiting for an answer: a
	// client is sequential.
	Skipped int64 `json:"skipped"`

	Events    int64 `json:"events"`    // watch events read, bookmarks not among them
	Bookmarks int64 `json:"bookmarks"` // bookmark events read
	Resumes   int64 `json:"resumes"`   // watches resumed by resourceVersion
	Relists   int64 `json:"relists"`   // watches that had to list again (410)
	// Hidden counts changes that a relist jumped over: the API allows it, and
	// they are neither missed nor seen.
	Hidden int64 `json:"hidden"`

	// Linearizable: "yes", "no" or "unknown". Unknown is no pass.
	Linearizable string `json:"linearizable"`
	// LostWrites counts acknowledged writes that are not in the chain of
	// versions that leads to the final state. It excludes Writes.Unknown, which
	// were never acknowledged.
	LostWrites int64 `json:"lostWrites"`
	// ViolationCounts is by kind (see Violation); the sum is ViolationCount.
	ViolationCounts map[string]int64 `json:"violationCounts,omitempty"`
	ViolationCount  int64            `json:"violationCount"`       // of all kinds
	Violations      []Violation      `json:"violations,omitempty"` // the first twenty of each kind
	// Unjudged says in a line each what could not be judged. Where there is
	// one, neither LostWrites nor ViolationCount is a pass when it is zero.
	Unjudged []string `json:"unjudged,omitempty"`
	// Files of the run directory with the evidence: the history, and pictures
	// of what is not linearizable. Written where there is a violation.
	Files []string `json:"files,omitempty"`
	// CheckSeconds is how long the checker took.
	CheckSeconds float64 `json:"checkSeconds"`
}

// HistoryOperations counts operations of one kind by what became of them.
// Invoked = Succeeded + Conflicts + Refused + Unknown.
type HistoryOperations struct {
	Invoked   int64 `json:"invoked"`   // begun
	Succeeded int64 `json:"succeeded"` // answered with 2xx; a read's 404 is an answer too
	Conflicts int64 `json:"conflicts"` // writes refused for their resourceVersion (409)
	Refused   int64 `json:"refused"`   // certainly not executed: another 4xx, or no connection
	// Unknown: a timeout, a lost connection, a 5xx. A write may have happened
	// then, or may still.
	Unknown int64 `json:"unknown"`
}

// Violation is one promise of the API that was broken.
type Violation struct {
	// Kind: "lost-write", "not-linearizable", "backwards-read",
	// "missed-event", "doubled-event", "reordered-event", or "phantom" (a
	// state that no write can have made).
	Kind     string `json:"kind"`
	Register string `json:"register"` // the ConfigMap's name
	// Client that saw it, if one did. Numbers from History.Clients on are the
	// lists of the watchers in turn, and after those the final reads.
	Client   *int    `json:"client,omitempty"`
	Watcher  *int    `json:"watcher,omitempty"`   // who saw it, if a watcher did
	Version  uint64  `json:"version,omitempty"`   // the resourceVersion concerned
	AtSecond float64 `json:"atSeconds,omitempty"` // since History.Start
	Detail   string  `json:"detail"`              // in one sentence
}

// The kinds of violations.
const (
	LostWrite       = "lost-write"
	NotLinearizable = "not-linearizable"
	BackwardsRead   = "backwards-read"
	MissedEvent     = "missed-event"
	DoubledEvent    = "doubled-event"
	ReorderedEvent  = "reordered-event"
	Phantom         = "phantom"
)
