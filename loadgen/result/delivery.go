package result

// Action is the work of one action on objects in a phase. It is recorded only if the action has a rate, repeats, or has
// a delay `after`.
type Action struct {
	Index     int    `json:"index"`               // index in the phase's actions, from 0
	Name      string `json:"name"`                // action and its resource, such as "patch configmaps"
	RoundsDue int64  `json:"roundsDue,omitempty"` // due rounds of a repeated action
	// Rounds: rounds that began; a round is skipped if it is due while the previous round runs
	Rounds   int64   `json:"rounds"`
	Rate     float64 `json:"ratePerSecond,omitempty"`
	AtOnce   int     `json:"atOnce,omitempty"`  // maximum number of requests in flight
	Requests int64   `json:"requests"`          // requests due by the end of the phase, in the rounds that began
	Done     int64   `json:"done"`              // part of `requests` that succeeded
	Refused  int64   `json:"refused,omitempty"` // part of `requests`: evictions that a PodDisruptionBudget refused
	// Cut: the phase ended before the action had ended; only for an action without rate and rounds
	Cut        bool    `json:"cut,omitempty"`
	DueSeconds float64 `json:"dueSeconds"`  // time that the requests should take at the action's rate
	Seconds    float64 `json:"tookSeconds"` // time that the requests took
	Service    Latency `json:"service"`     // time of each request, including retries
}

// Delivery compares the work that a load or an action did in a phase with the requested work.
type Delivery struct {
	Name string `json:"name"`           // name of the load, or the action and its resource
	Path string `json:"path,omitempty"` // path of the action in the scenario, such as "phases.churn.actions[0]"
	// What: "requests", "watches", "operations" (of a history), or "rounds" (of an action)
	What string `json:"what"`
	// Asked: requested work: watches or rounds due by the end of the phase, or requests whose responses were due by
	// then
	Asked     int64   `json:"asked"`
	Done      int64   `json:"done"` // part of `asked` that succeeded
	AskedRate float64 `json:"askedPerSecond,omitempty"`
	DoneRate  float64 `json:"donePerSecond,omitempty"`
	Share     float64 `json:"share"` // fraction of the requested work that was done, at most 1
	Least     float64 `json:"least"` // minimum share for the run to pass; 0: not judged
	// Limit: what limited the share ([evidence](objectives.md#loads-and-actions-below-their-rate)): "generator",
	// "asked" (the scenario), "cluster" or "machine"; absent: the share is not low, or not judged
	Limit string `json:"limit,omitempty"`
	Why   string `json:"why,omitempty"` // reason for the limit, in words
}

// The values of Delivery.Limit: the reasons for a share below `least`.
const (
	LimitGenerator = "generator" // the generator's own delay; the run could not be judged
	LimitAsked     = "asked"     // responses were fast, so the scenario's concurrency is too low for its rate
	LimitCluster   = "cluster"   // responses were slow or failed; the run fails
	LimitMachine   = "machine"   // responses were slow while other programs kept the machine busy; the run is not judged
)
