package result

import "time"

// Measurements is the content of measurements.json: the exact measurements of the generator itself.
type Measurements struct {
	Phases    []Phase   `json:"phases"`
	Nodes     *Nodes    `json:"nodes,omitempty"`
	Histories []History `json:"histories,omitempty"`
	Replays   []Replay  `json:"replays,omitempty"`
	Generator Generator `json:"generator"`
	Workers   []Worker  `json:"workers,omitempty"`
	Scrapes   Scrapes   `json:"scrapes"`
}

// Phase is one phase of a run, with its times and measurements.
type Phase struct {
	Name         string    `json:"name"` // unique in the scenario
	Start        time.Time `json:"start"`
	End          time.Time `json:"end"`
	Until        string    `json:"until,omitempty"` // condition that ends the phase
	ConditionMet bool      `json:"conditionMet"`
	Interrupted  bool      `json:"interrupted,omitempty"`
	EndedEarly   bool      `json:"endedEarly,omitempty"` // the user ended the phase early; the phase is then not judged
	// PausedSeconds: how long the user paused the load; the phase is then not judged
	PausedSeconds float64 `json:"pausedSeconds,omitempty"`
	// Reached: how close an unmet condition on objects came, such as "913 of 1000 pods"
	Reached string `json:"reached,omitempty"`
	// Saturated: bounds that the generator exceeded; the run then could not be judged
	Saturated []string `json:"saturated,omitempty"`
	// StalledSeconds: time in which the generator was stopped or at least 10 ms late
	StalledSeconds float64 `json:"stalledSeconds,omitempty"`

	Requests    []Requests   `json:"requests,omitempty"`
	Watches     []Watches    `json:"watches,omitempty"`
	Changes     []Changes    `json:"changes,omitempty"`
	Workload    *Workload    `json:"workload,omitempty"`
	Custom      []Custom     `json:"custom,omitempty"`
	Machine     *Machine     `json:"machine,omitempty"`     // only on Linux
	Transitions []Transition `json:"transitions,omitempty"` // only for objects that reached the first state in this phase
	Actions     []Action     `json:"actions,omitempty"`
	Deliveries  []Delivery   `json:"deliveries,omitempty"` // only in result.json
}

// Machine holds the use of the generator's machine in a phase.
type Machine struct {
	BusySeconds float64 `json:"busySeconds"` // processor time used by all processes
	// OwnSeconds: part of busySeconds used by the generator and the processes that it started
	OwnSeconds   float64 `json:"ownSeconds"`
	StealSeconds float64 `json:"stealSeconds"` // processor time taken by the hypervisor
	Processors   int     `json:"processors,omitempty"`
	// CPUWaitSeconds: time in which some process waited for a processor (Linux PSI)
	CPUWaitSeconds    *float64 `json:"cpuWaitSeconds,omitempty"`
	MemoryWaitSeconds *float64 `json:"memoryWaitSeconds,omitempty"` // time in which some process waited for memory
	IOWaitSeconds     *float64 `json:"ioWaitSeconds,omitempty"`     // time in which some process waited for a disk
	// ClientRequests: requests to the API servers from clients other than the run and the control plane's components
	ClientRequests *float64 `json:"clientRequests,omitempty"`
	// ClientSeconds: part of busySeconds that the clients in clientRequests may have used
	ClientSeconds    *float64 `json:"clientSeconds,omitempty"`
	GeneratorSeconds float64  `json:"generatorSeconds,omitempty"` // part of ownSeconds used by the generator
	Busy             string   `json:"busy,omitempty"`             // why the machine was busy while durations were measured
	Notes            []string `json:"notes,omitempty"`            // facts about the machine's use
}

// Seconds returns the length of the phase.
func (p Phase) Seconds() float64 { return p.End.Sub(p.Start).Seconds() }

// Steered reports whether the user paused the load during the phase or ended the phase early.
func (p Phase) Steered() bool { return p.EndedEarly || p.PausedSeconds > 0 }

// Latency holds the quantiles of a distribution, from an HDR histogram.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"meanSeconds"`
	P50   float64 `json:"p50Seconds"`
	P90   float64 `json:"p90Seconds"`
	P95   float64 `json:"p95Seconds"`
	P99   float64 `json:"p99Seconds"`
	P999  float64 `json:"p999Seconds"`
	Max   float64 `json:"maxSeconds"`
	// P99Upper: 99% upper confidence bound of the p99; absent for fewer than 459 values
	P99Upper *float64 `json:"p99UpperSeconds,omitempty"`
	// Clamped: values above the histogram's range; quantiles among these values are too low
	Clamped int64 `json:"clamped,omitempty"`
}

// Requests holds the requests of one load with one verb and resource. A request belongs to the phase in which it is due
// (its intended start).
type Requests struct {
	Load string `json:"load"`
	// Verb: "get", "list", "create", "update", "patch", "delete" or "apply"
	Verb     string `json:"verb"`
	Resource string `json:"resource"` // such as configmaps or deployments.apps
	// Variant: distinguishes operations with the same verb and resource, such as "rv=0"
	Variant string `json:"variant,omitempty"`
	Tenant  string `json:"tenant,omitempty"` // absent: the load's own user
	Offered int64  `json:"offered"`          // due requests: sent + unsent
	Sent    int64  `json:"sent"`
	Unsent  int64  `json:"unsent"` // requests not sent because maxInFlight requests were in flight
	// Outcomes: responses by HTTP status ("200"), and failures by kind: "timeout", "reset", "refused", "truncated",
	// "malformed", "goaway", "protocol", "canceled" or "other"
	Outcomes  map[string]int64 `json:"outcomes"`
	Succeeded int64            `json:"succeeded"` // 2xx responses
	// UnsentLate: unsent requests that the generator handled late or just after a stall
	UnsentLate int64 `json:"unsentLate,omitempty"`
	// FailedLate: failed requests whose latency was mostly the generator's own delay
	FailedLate int64 `json:"failedLate,omitempty"`
	// Answered: 2xx responses that arrived in the phase, including responses to earlier requests
	Answered    *int64  `json:"answered,omitempty"`
	Overdue     int64   `json:"overdue,omitempty"` // part of `answered` that arrived after the end of the load's schedule
	Backlog     int64   `json:"backlog,omitempty"` // requests in flight at the end of the phase
	DueSeconds  float64 `json:"dueSeconds"`        // time during which requests were due
	OfferedRate float64 `json:"offeredPerSecond"`
	// AchievedRate: 2xx responses that arrived within dueSeconds, per second
	AchievedRate float64 `json:"achievedPerSecond"`
	Latency      Latency `json:"latency"`  // lag + connect + service of all sent requests, including failed ones
	External     Latency `json:"external"` // latency without the generator's lag and stalls
	// Lag: time from the intended start until the generator began to handle the request
	Lag     Latency `json:"lag"`
	Connect Latency `json:"connect"`         // time to wait for a free HTTP/2 stream or a new connection
	Service Latency `json:"service"`         // time from the end of connect until the last byte of the response
	Bytes   int64   `json:"bytes"`           // size of the response bodies, as transferred
	Pages   int64   `json:"pages,omitempty"` // pages of lists that needed several pages
}

// AnsweredInPhase returns the number of 2xx responses that arrived during the phase. For older runs, which did not
// record this number, it returns the number of 2xx responses to the phase's requests.
func (r Requests) AnsweredInPhase() int64 {
	if r.Answered == nil {
		return r.Succeeded
	}
	return *r.Answered
}

// Watches holds the results of one load's watches in a phase.
type Watches struct {
	Load     string           `json:"load"`
	Resource string           `json:"resource"`
	Wanted   int              `json:"wanted"`             // watches that the load opens in total
	Open     int              `json:"open"`               // watches open at the end of the phase
	Due      int              `json:"due,omitempty"`      // watches due by the end of the phase
	Failed   int64            `json:"failed"`             // failed attempts to open a watch or to list
	Failures map[string]int64 `json:"failures,omitempty"` // failed attempts by outcome, as in [Requests](#requests)
	// Refusals: failed attempts by status and message, such as "429 storage is (re)initializing"
	Refusals    map[string]int64 `json:"refusals,omitempty"`
	OpenLatency Latency          `json:"openLatency"` // time from the intended start until the response headers arrived
	// Expected: events to deliver: each acknowledged write counts once per watch of its object
	Expected   int64 `json:"expected"`
	Delivered  int64 `json:"delivered"`  // expected events that were delivered, without repetitions
	Lost       int64 `json:"lost"`       // expected - delivered, after waiting for missing events
	Duplicated int64 `json:"duplicated"` // repeated deliveries of one event
	Reordered  int64 `json:"reordered"`  // deliveries of an event after a newer event
	BeforeAck  int64 `json:"beforeAck"`  // deliveries before the acknowledgement of their write
	// Late: deliveries of events that already counted as lost; not in `delivered`
	Late            int64   `json:"late,omitempty"`
	Events          int64   `json:"events"` // all events that were read
	Bookmarks       int64   `json:"bookmarks"`
	Reconnects      int64   `json:"reconnects"`          // watches resumed by resourceVersion
	Relists         int64   `json:"relists"`             // watches that had to list again after a 410
	Delivery        Latency `json:"delivery"`            // time from the acknowledgement of the write to the delivery
	External        Latency `json:"external"`            // `delivery` without the generator's stalls
	SlowestPerWatch Latency `json:"slowestPerWatch"`     // slowest delivery of each watch
	Lossy           int     `json:"lossy"`               // watches that lost an event
	WorstLost       int64   `json:"worstLost"`           // most events that one watch lost
	Bytes           int64   `json:"bytes"`               // total size of all events
	Malformed       int64   `json:"malformed,omitempty"` // streams closed because of an incomplete event
	Slow            int     `json:"slow,omitempty"`      // watches that the scenario makes read slowly; not in `delivery`
}

// Changes holds the results of one load of kind "changes" in a phase: writes whose delivery to watches is measured.
type Changes struct {
	Requests
	Acknowledged int64 `json:"acknowledged"` // writes that every watch must deliver exactly once
}

// Workload is the progress of pods in a phase. Times are the arrival times of watch events at the generator.
type Workload struct {
	PodsCreated int64 `json:"podsCreated"`
	PodsReady   int64 `json:"podsReady"`
	PodsDeleted int64 `json:"podsDeleted"`
	// PodsUnmeasured: pods that were first seen in a list instead of an event; not in the latencies
	PodsUnmeasured int64     `json:"podsUnmeasured,omitempty"`
	Reconnects     int64     `json:"reconnects,omitempty"`
	Relists        int64     `json:"relists,omitempty"`
	ToScheduled    Latency   `json:"toScheduled"` // time from the pod's first event to its binding to a node
	ToReady        Latency   `json:"toReady"`     // time from the binding until the pod was Ready
	Startup        Latency   `json:"startup"`     // time from the pod's first event until the pod was Ready
	External       Latency   `json:"external"`    // `startup` without the generator's stalls
	ToEndpoint     Latency   `json:"toEndpoint"`  // time from Ready until the pod was in an EndpointSlice
	Rollouts       []Rollout `json:"rollouts,omitempty"`
	NotReadyAfter  *float64  `json:"notReadyAfterSeconds,omitempty"`  // time from the failure of nodes until all were NotReady
	RecoveredAfter *float64  `json:"recoveredAfterSeconds,omitempty"` // time from the failure of nodes until every workload was complete again
}

// Rollout is one change of a workload, with the steps (hops) in which the control plane carries it out.
type Rollout struct {
	Deployment string    `json:"deployment"`
	Action     string    `json:"action"` // "deploy", "rollingUpdate" or "scale"
	Pods       int64     `json:"pods"`
	Began      time.Time `json:"began"`    // just before the change was sent
	Complete   bool      `json:"complete"` // all new pods completed the last step
	Hops       []Hop     `json:"hops"`
}

// Hop is one step of a rollout. Its times count from just before the change was sent until loadgen saw the first or the
// last object complete the step.
type Hop struct {
	// Name: "api write" (acknowledged), "replicaset" (created and scaled), "pods" (created), "binding", "ready" or
	// "endpointslice" (for a Deployment with a Service)
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	First *float64 `json:"firstSeconds,omitempty"`
	Last  *float64 `json:"lastSeconds,omitempty"`
}

// Nodes holds the results of the simulated nodes in the whole run.
type Nodes struct {
	Count int `json:"count"`
	// Fidelity: "kubelet", "lean" or "shared" ([simulated nodes](../how-to/simulated-nodes.md))
	Fidelity            string  `json:"fidelity"`
	ReadySeconds        float64 `json:"readySeconds"`                  // from the start of registration until all nodes were Ready
	ReadyStalledSeconds float64 `json:"readyStalledSeconds,omitempty"` // part of readySeconds in which the generator was stalled
	Heartbeats          int64   `json:"heartbeats"`                    // acknowledged lease renewals
	MissedByGenerator   int64   `json:"missedByGenerator"`             // renewals missed because of the generator's own delay
	MissedByServer      int64   `json:"missedByServer"`                // renewals not acknowledged before the next was due, except missedByGenerator
	// Delayed: renewals that began over 1.05 intervals after the previous one
	Delayed int64 `json:"delayed,omitempty"`
	// Heartbeat: time from the intended start of a renewal until it was acknowledged or missed
	Heartbeat    Latency `json:"heartbeat"`
	StatusWrites int64   `json:"statusWrites"`
	PodsStarted  int64   `json:"podsStarted"`
	PodsStopped  int64   `json:"podsStopped"`
	Watches      int64   `json:"watches"` // largest number of watches open at the same time
	Reconnects   int64   `json:"reconnects"`
	Relists      int64   `json:"relists"`
	// Errors: failed requests by verb, resource and status, such as "patch pods/status 409"
	Errors map[string]int64 `json:"errors,omitempty"`
	// PodLives: events of pods with a [life](pod-lives.md), by entry of `nodes.podLives` and kind of event
	PodLives map[string]map[string]int64 `json:"podLives,omitempty"`
}

// Generator holds the resources that the generator used, and the bounds that it exceeded.
type Generator struct {
	CPUSeconds     float64 `json:"cpuSeconds"`
	MaxRSSBytes    int64   `json:"maxRSSBytes"`
	MaxGoroutines  int     `json:"maxGoroutines"`
	MaxDescriptors int     `json:"maxDescriptors"`
	GCPauseP99     float64 `json:"gcPauseP99Seconds"`
	GCPauseMax     float64 `json:"gcPauseMaxSeconds"`
	GCCPU          float64 `json:"gcCPUSeconds"`
	// BacklogMax: largest amount of data that was received from API servers but not yet read
	BacklogMax    int64   `json:"backlogMaxBytes"`
	SchedulingLag Latency `json:"schedulingLag"` // how late a timer that is due every 10 ms fires
	// Saturated: bounds that the generator exceeded; the run then could not be judged
	Saturated []string `json:"saturated,omitempty"`
}

// Scrapes counts the scrapes that record the components' metrics.
type Scrapes struct {
	Done   int64            `json:"done"`             // completed scrapes
	Failed map[string]int64 `json:"failed,omitempty"` // failed scrapes, by instance
}
