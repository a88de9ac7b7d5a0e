package result

// Action holds the work of one action on objects in a phase. It is recorded for actions that have a rate, repeat or start later
// than the phase.
type Action struct {
	Index int    `json:"index"` // index in the phase's list of actions, from 0
	Name  string `json:"name"`  // the action and its resource, such as "patch configmaps"
	// RoundsDue: number of rounds of a repeated action that were due
	RoundsDue int64 `json:"roundsDue,omitempty"`
	// Rounds: number of rounds that began. A round that is due while the previous one is running is skipped
	Rounds int64 `json:"rounds"`
	// Rate: requests per second in the scenario; absent if the action has no rate
	Rate float64 `json:"ratePerSecond,omitempty"`
	// AtOnce: maximum number of requests in flight
	AtOnce int `json:"atOnce,omitempty"`
	// Requests: number of requests due by the end of the phase, in the rounds that began
	Requests int64 `json:"requests"`
	Done     int64 `json:"done"` // how many of requests were done
	// Refused: how many of requests were evictions that a PodDisruptionBudget refused
	Refused int64 `json:"refused,omitempty"`
	// Cut: the phase ended while the action was running, and the action has neither a rate nor rounds
	Cut        bool    `json:"cut,omitempty"`
	DueSeconds float64 `json:"dueSeconds"`  // time that the requests take at the rate
	Seconds    float64 `json:"tookSeconds"` // time that the requests took
	// Service: service time of each request including its repetitions, and of each list of the objects that the action selects
	Service Latency `json:"service"`
}

// Delivery compares the work that a load or an action did in a phase with the work in the scenario.
type Delivery struct {
	Name string `json:"name"`           // name of the load, or the action, such as "patch configmaps"
	Path string `json:"path,omitempty"` // path of an action, such as "phases.churn.actions[0]"
	// What: "requests", "watches", "operations" (of a history), or "rounds" (of an action)
	What string `json:"what"`
	// Asked: number of watches or rounds that were due by the end of the phase, or number of requests whose answers were
	// due by the end of the phase
	Asked     int64   `json:"asked"`
	Done      int64   `json:"done"`                     // how many of asked succeeded
	AskedRate float64 `json:"askedPerSecond,omitempty"` // rate of the requests that were due
	DoneRate  float64 `json:"donePerSecond,omitempty"`
	Share     float64 `json:"share"` // done share of the work, at most 1
	// Least: the run does not pass if share is below this; 0: not judged
	Least float64 `json:"least"`
	// Limit: why less was done: "generator", "asked", "cluster" or "machine"; empty: enough was done, or it is not judged
	Limit string `json:"limit,omitempty"`
	Why   string `json:"why,omitempty"` // the limit in words
}

// The limits that may keep a load or an action from doing its work.
const (
	LimitGenerator = "generator" // the generator's own delay: the run could not be judged
	LimitAsked     = "asked"     // answers were fast: the scenario's concurrency is too low for its rate
	LimitCluster   = "cluster"   // answers were slow or failed: the run fails
	LimitMachine   = "machine"   // answers were slow while other programs kept the machine busy: the run could not be judged
)
