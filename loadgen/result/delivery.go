package result

// Action holds what an action on objects did in a phase: one with a rate, or one that is repeated.
type Action struct {
	Index int    `json:"index"` // its place in the phase's list of actions, from 0
	Name  string `json:"name"`  // as "patch configmaps"
	// RoundsDue: times at which it was due, of an action that is repeated
	RoundsDue int64 `json:"roundsDue,omitempty"`
	// Rounds: times that it was begun. A time that passes while it is at work is left out
	Rounds int64 `json:"rounds"`
	// Rate: requests a second that the scenario asks for; absent: none
	Rate float64 `json:"ratePerSecond,omitempty"`
	// AtOnce: most requests that it has under way
	AtOnce int `json:"atOnce,omitempty"`
	// Requests: of the rounds that were begun, due by the end of the phase
	Requests int64 `json:"requests"`
	Done     int64 `json:"done"` // of them, done
	// Refused: of them, evictions that a PodDisruptionBudget refused
	Refused int64 `json:"refused,omitempty"`
	// Cut: the phase ended while it was at work, and it has neither a rate nor rounds
	Cut        bool    `json:"cut,omitempty"`
	DueSeconds float64 `json:"dueSeconds"`  // that they take at the rate
	Seconds    float64 `json:"tookSeconds"` // that they took
	// Service: of each request with its repetitions, and of each list of what the action selects
	Service Latency `json:"service"`
}

// Delivery compares what a load or an action did in a phase with what it was asked.
type Delivery struct {
	Name string `json:"name"`           // of the load, or of the action as "patch configmaps"
	Path string `json:"path,omitempty"` // of an action, as "phases.churn.actions[0]"
	// What: "requests", "watches", "operations" (of a history), or "rounds" (of an action)
	What string `json:"what"`
	// Asked: arrivals whose answers were due by the end of the phase, watches, or rounds
	Asked     int64   `json:"asked"`
	Done      int64   `json:"done"`                     // of them, with success
	AskedRate float64 `json:"askedPerSecond,omitempty"` // of requests
	DoneRate  float64 `json:"donePerSecond,omitempty"`
	Share     float64 `json:"share"` // of what was asked, at most 1
	// Least: the share below which the run does not pass; 0: it is not judged
	Least float64 `json:"least"`
	// Limit: why less was done: "generator", "asked", "cluster" or "machine"; empty: it was done, or is not judged
	Limit string `json:"limit,omitempty"`
	Why   string `json:"why,omitempty"` // the limit in words
}

// What may keep a load or an action from doing what it is asked.
const (
	LimitGenerator = "generator" // its own delay: the run could not be judged
	LimitAsked     = "asked"     // answers were fast: the scenario's concurrency does not give its rate
	LimitCluster   = "cluster"   // answers were slow, or failed: the run fails
	LimitMachine   = "machine"   // answers were slow while other programs kept the machine busy: the run could not be judged
)
