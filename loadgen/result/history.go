package result

import "time"

// History holds the observations and the verdict of a load of kind "history" over the
// whole run.
type History struct {
	Load      string    `json:"load"`
	Start     time.Time `json:"start"` // violations count from here
	Registers int       `json:"registers"`
	Clients   int       `json:"clients"`  // each has its own connection
	Watchers  int       `json:"watchers"` // each of all registers, over its own connection

	Writes HistoryOperations `json:"writes"` // updates with a resourceVersion
	// Reads: consistent reads; a list counts once for each register
	Reads           HistoryOperations `json:"reads"`
	UnknownHappened int64             `json:"unknownHappened"` // writes with an unknown outcome whose effect was observed later
	CachedReads     HistoryOperations `json:"cachedReads"`     // reads with resourceVersion=0
	CachedOld       int64             `json:"cachedOld"`       // cached reads that returned an older state than the client already knew; allowed
	Skipped         int64             `json:"skipped"`         // arrivals skipped because the client was still waiting

	Events    int64 `json:"events"` // without bookmarks
	Bookmarks int64 `json:"bookmarks"`
	Resumes   int64 `json:"resumes"` // watches resumed by resourceVersion
	Relists   int64 `json:"relists"` // watches that had to list again (410)
	Hidden    int64 `json:"hidden"`  // changes that watchers missed because of a relist; allowed

	Linearizable string `json:"linearizable"` // "yes", "no" or "unknown"; only "yes" passes
	// LostWrites: acknowledged writes that are missing in the chain of versions to the final state
	LostWrites      int64            `json:"lostWrites"`
	ViolationCounts map[string]int64 `json:"violationCounts,omitempty"`
	ViolationCount  int64            `json:"violationCount"`
	Violations      []Violation      `json:"violations,omitempty"` // the first twenty of each kind
	// Unjudged: what could not be judged; the run then does not pass, even without lost writes and violations
	Unjudged []string `json:"unjudged,omitempty"`
	// Files: the evidence: the history, and pictures of operations that are not linearizable
	Files        []string `json:"files,omitempty"`
	CheckSeconds float64  `json:"checkSeconds"`
}

// HistoryOperations counts operations by outcome. Invoked is the sum of all outcomes.
type HistoryOperations struct {
	Invoked   int64 `json:"invoked"`
	Succeeded int64 `json:"succeeded"` // 2xx, and 404 for a read
	Conflicts int64 `json:"conflicts"` // 409
	Refused   int64 `json:"refused"`   // other 4xx answers, or no connection
	Unknown   int64 `json:"unknown"`   // timeout, lost connection or 5xx
}

// Violation is one broken guarantee of the API.
type Violation struct {
	// Kind: "lost-write", "not-linearizable", "backwards-read", "missed-event",
	// "doubled-event", "reordered-event" or "phantom" (a state that no write created)
	Kind     string `json:"kind"`
	Register string `json:"register"` // the ConfigMap
	// Client: the client that observed the violation. Numbers from History.Clients on stand for the watchers' lists, then the
	// final reads
	Client   *int    `json:"client,omitempty"`
	Watcher  *int    `json:"watcher,omitempty"` // the watcher that observed the violation
	Version  uint64  `json:"version,omitempty"`
	AtSecond float64 `json:"atSeconds,omitempty"` // seconds since History.Start
	Detail   string  `json:"detail"`
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
