package result

import "time"

// History holds the results of a load of kind "history" in the whole run. Its clients read and write ConfigMaps
// (registers) to find lost writes and stale reads.
type History struct {
	Load      string    `json:"load"`
	Start     time.Time `json:"start"`
	Registers int       `json:"registers"`
	Clients   int       `json:"clients"`
	Watchers  int       `json:"watchers"`

	Writes HistoryOperations `json:"writes"` // updates with a resourceVersion
	Reads  HistoryOperations `json:"reads"`  // consistent reads; a list counts once for each register
	// UnknownHappened: writes whose outcome was unknown, but whose effect was seen later
	UnknownHappened int64             `json:"unknownHappened"`
	CachedReads     HistoryOperations `json:"cachedReads"` // reads with resourceVersion=0
	// CachedOld: cached reads that returned an older state than the client already knew (allowed)
	CachedOld int64 `json:"cachedOld"`
	Skipped   int64 `json:"skipped"` // operations not sent because their client still waited for a response

	Events    int64 `json:"events"` // watch events, excluding bookmarks
	Bookmarks int64 `json:"bookmarks"`
	Resumes   int64 `json:"resumes"` // watches resumed by resourceVersion
	Relists   int64 `json:"relists"`
	Hidden    int64 `json:"hidden"` // changes that watchers missed because of a relist (allowed)

	Linearizable    string           `json:"linearizable"` // "yes", "no" or "unknown"; only "yes" passes
	LostWrites      int64            `json:"lostWrites"`   // acknowledged writes that the API server lost
	ViolationCounts map[string]int64 `json:"violationCounts,omitempty"`
	ViolationCount  int64            `json:"violationCount"`
	Violations      []Violation      `json:"violations,omitempty"` // broken guarantees: the first twenty of each kind
	Unjudged        []string         `json:"unjudged,omitempty"`   // what could not be judged; such a run does not pass
	// Files: recorded operations, and pictures of operations that are not linearizable
	Files        []string `json:"files,omitempty"`
	CheckSeconds float64  `json:"checkSeconds"`
}

// HistoryOperations counts operations by outcome.
type HistoryOperations struct {
	Invoked   int64 `json:"invoked"`   // operations sent
	Succeeded int64 `json:"succeeded"` // 2xx responses, and 404 responses to reads
	Conflicts int64 `json:"conflicts"` // 409 responses
	Refused   int64 `json:"refused"`   // other 4xx responses, and operations without a connection
	Unknown   int64 `json:"unknown"`   // timeouts, lost connections and 5xx responses
}

// Violation is one broken guarantee of the API in a history.
type Violation struct {
	// Kind: "lost-write", "not-linearizable", "backwards-read", "missed-event", "doubled-event", "reordered-event" or
	// "phantom" (a state that no write created)
	Kind     string  `json:"kind"`
	Register string  `json:"register"`
	Client   *int    `json:"client,omitempty"`    // number of the client that observed the violation
	Watcher  *int    `json:"watcher,omitempty"`   // watcher that observed the violation
	Version  uint64  `json:"version,omitempty"`   // resourceVersion that the violation concerns
	AtSecond float64 `json:"atSeconds,omitempty"` // time of the violation, since the start of the load
	Detail   string  `json:"detail"`              // what was observed
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
