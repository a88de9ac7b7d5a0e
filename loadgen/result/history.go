package result

import "time"

// History holds the observations and the verdict of a load of kind "history" over the
// whole run.
type History struct {
	Load      string    `json:"load"`
	Start     time.Time `json:"start"` // from which violations count
	Registers int       `json:"registers"`
	Clients   int       `json:"clients"`  // one connection each
	Watchers  int       `json:"watchers"` // of all registers, one connection each

	Writes HistoryOperations `json:"writes"` // updates with a resourceVersion
	// Reads: consistent; a list counts once for each register
	Reads           HistoryOperations `json:"reads"`
	UnknownHappened int64             `json:"unknownHappened"` // of unknown outcome, seen later
	CachedReads     HistoryOperations `json:"cachedReads"`     // with resourceVersion=0
	CachedOld       int64             `json:"cachedOld"`       // older than their client knew
	Skipped         int64             `json:"skipped"`         // arrivals whose client still waited

	Events    int64 `json:"events"` // without bookmarks
	Bookmarks int64 `json:"bookmarks"`
	Resumes   int64 `json:"resumes"` // watches resumed by resourceVersion
	Relists   int64 `json:"relists"` // watches that had to list again (410)
	Hidden    int64 `json:"hidden"`  // changes that a relist jumped over

	Linearizable string `json:"linearizable"` // "yes", "no" or "unknown", which is no pass
	// LostWrites: acknowledged, and not in the chain of versions to the final state
	LostWrites      int64            `json:"lostWrites"`
	ViolationCounts map[string]int64 `json:"violationCounts,omitempty"`
	ViolationCount  int64            `json:"violationCount"`
	Violations      []Violation      `json:"violations,omitempty"` // the first twenty of each kind
	// Unjudged: why zero LostWrites and ViolationCount are no pass
	Unjudged []string `json:"unjudged,omitempty"`
	// Files: evidence: the history, pictures of operations that are not linearizable
	Files        []string `json:"files,omitempty"`
	CheckSeconds float64  `json:"checkSeconds"`
}

// HistoryOperations counts operations by outcome; invoked is the sum of the others.
type HistoryOperations struct {
	Invoked   int64 `json:"invoked"`
	Succeeded int64 `json:"succeeded"` // 2xx; of a read also 404
	Conflicts int64 `json:"conflicts"` // 409
	Refused   int64 `json:"refused"`   // another 4xx, or no connection
	Unknown   int64 `json:"unknown"`   // timeout, lost connection or 5xx
}

// Violation is one promise of the API that was broken.
type Violation struct {
	// Kind: "lost-write", "not-linearizable", "backwards-read", "missed-event",
	// "doubled-event", "reordered-event" or "phantom" (a state that no write made)
	Kind     string `json:"kind"`
	Register string `json:"register"` // the ConfigMap
	// Client: that saw it; from History.Clients on: the watchers' lists, then the final reads
	Client   *int    `json:"client,omitempty"`
	Watcher  *int    `json:"watcher,omitempty"` // that saw it
	Version  uint64  `json:"version,omitempty"`
	AtSecond float64 `json:"atSeconds,omitempty"` // since History.Start
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
