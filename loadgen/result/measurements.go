package result

import "time"

// Measurements is measurements.json: the generator's own exact measurements.
type Measurements struct {
	Phases    []Phase   `json:"phases"`
	Nodes     *Nodes    `json:"nodes,omitempty"`
	Histories []History `json:"histories,omitempty"` // loads of kind "history"
	Replays   []Replay  `json:"replays,omitempty"`   // loads of kind "replay"
	Generator Generator `json:"generator"`
	Workers   []Worker  `json:"workers,omitempty"` // only for a run with several generators
	Scrapes   Scrapes   `json:"scrapes"`
}

// Phase is one phase of a run, with its times and measurements.
type Phase struct {
	Name         string    `json:"name"`                  // unique in the scenario
	Start        time.Time `json:"start"`                 // time of the scrape that begins it
	End          time.Time `json:"end"`                   // time of the scrape that ends it
	Until        string    `json:"until,omitempty"`       // the condition that ends it; empty for a fixed length
	ConditionMet bool      `json:"conditionMet"`          // whether the condition was met within its bound
	Interrupted  bool      `json:"interrupted,omitempty"` // whether the user or a failure interrupted the phase
	// EndedEarly: the user ended the phase early and continued with the next; its measurements are not judged
	EndedEarly bool `json:"endedEarly,omitempty"`
	// PausedSeconds: how long the user paused the load; if it did, the phase's measurements are not judged
	PausedSeconds float64 `json:"pausedSeconds,omitempty"`
	// Reached: progress of a condition on objects that was not met, such as "913 of 1000 pods"
	Reached string `json:"reached,omitempty"`
	// Saturated: bounds that the generator exceeded; its measurements in the phase are not judged
	Saturated []string `json:"saturated,omitempty"`
	// StalledSeconds: time during which the generator was stopped, or late by at least 10 ms
	StalledSeconds float64 `json:"stalledSeconds,omitempty"`

	Requests []Requests `json:"requests,omitempty"`
	Watches  []Watches  `json:"watches,omitempty"`
	Changes  []Changes  `json:"changes,omitempty"`
	Workload *Workload  `json:"workload,omitempty"` // progress of pods
	Custom   []Custom   `json:"custom,omitempty"`   // measurements of the Go program that ran the scenario
	Machine  *Machine   `json:"machine,omitempty"`  // only on Linux
	// Transitions: transitions of objects that reached the first state in the phase
	Transitions []Transition `json:"transitions,omitempty"`
	Actions     []Action     `json:"actions,omitempty"` // actions on objects that have a rate, repeat or start later than the phase
	// Deliveries: how much of the requested work loads and actions did; only in result.json
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// Machine is the use of the generator's machine in a phase.
type Machine struct {
	BusySeconds  float64 `json:"busySeconds"`  // busy time of all processors, by any process
	OwnSeconds   float64 `json:"ownSeconds"`   // part of busySeconds used by the generator and the processes that it started
	StealSeconds float64 `json:"stealSeconds"` // taken by the hypervisor
	// Processors: number of processors of the machine; absent if not recorded
	Processors int `json:"processors,omitempty"`
	// CPUWaitSeconds, MemoryWaitSeconds, IOWaitSeconds: time during which some process waited, from the kernel's
	// pressure stall information
	CPUWaitSeconds    *float64 `json:"cpuWaitSeconds,omitempty"`
	MemoryWaitSeconds *float64 `json:"memoryWaitSeconds,omitempty"`
	IOWaitSeconds     *float64 `json:"ioWaitSeconds,omitempty"`
	// ClientRequests: requests of clients other than the run and the plane's components that the API servers
	// answered; added by judging, from the archive; absent if unknown
	ClientRequests *float64 `json:"clientRequests,omitempty"`
	// ClientSeconds: part of busySeconds that these clients may have used; added by judging
	ClientSeconds *float64 `json:"clientSeconds,omitempty"`
	// GeneratorSeconds: part of ownSeconds used by the generator's own process; absent if not recorded
	GeneratorSeconds float64 `json:"generatorSeconds,omitempty"`
	// Busy: why the machine was busy while durations in the phase were measured; added by judging; absent if the machine was
	// not busy
	Busy string `json:"busy,omitempty"`
	// Notes: the facts of the machine in words; added by judging
	Notes []string `json:"notes,omitempty"`
}

// Seconds returns the length of the phase.
func (p Phase) Seconds() float64 { return p.End.Sub(p.Start).Seconds() }

// Steered reports whether the user paused the load during the phase or ended the phase early.
func (p Phase) Steered() bool { return p.EndedEarly || p.PausedSeconds > 0 }

// Latency is a distribution from an HDR histogram with three significant digits.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"meanSeconds"` // exact
	P50   float64 `json:"p50Seconds"`
	P90   float64 `json:"p90Seconds"`
	P95   float64 `json:"p95Seconds"`
	P99   float64 `json:"p99Seconds"`
	P999  float64 `json:"p999Seconds"`
	Max   float64 `json:"maxSeconds"` // exact
	// P99Upper: upper bound of the p99 with 99% confidence; absent below 459 values, which are too few
	P99Upper *float64 `json:"p99UpperSeconds,omitempty"`
	// Clamped: values above the range; quantiles that reach them are too low
	Clamped int64 `json:"clamped,omitempty"`
}

// Requests holds the results of one load's requests whose intended start lies in a phase.
type Requests struct {
	Load     string `json:"load"`
	Verb     string `json:"verb"`     // get, list, create, update, patch, delete or apply
	Resource string `json:"resource"` // as configmaps or deployments.apps
	// Variant: distinguishes operations with the same verb and resource, such as "rv=0"
	Variant string `json:"variant,omitempty"`
	Tenant  string `json:"tenant,omitempty"` // empty: the load's own identity
	Offered int64  `json:"offered"`          // arrivals; sent + unsent
	Sent    int64  `json:"sent"`
	Unsent  int64  `json:"unsent"` // arrivals without a free slot under maxInFlight
	// Outcomes: answers by HTTP status ("200"), failures by kind: "timeout", "reset", "refused",
	// "truncated", "malformed", "goaway", "protocol", "canceled" or "other"
	Outcomes  map[string]int64 `json:"outcomes"`
	Succeeded int64            `json:"succeeded"` // 2xx answers
	// UnsentLate: unsent arrivals that the generator handled more than 100 ms late, or just after it was stopped for that long
	UnsentLate int64 `json:"unsentLate,omitempty"`
	// FailedLate: failed requests for which the generator's own delay was more than half of the time
	FailedLate int64 `json:"failedLate,omitempty"`
	// Answered: 2xx answers that arrived in the phase, including answers to earlier requests; absent
	// if not recorded
	Answered *int64 `json:"answered,omitempty"`
	// Overdue: part of answered that arrived after the load's last arrival was due
	Overdue int64 `json:"overdue,omitempty"`
	// Backlog: requests sent in the phase or earlier that had no answer at its end
	Backlog     int64   `json:"backlog,omitempty"`
	DueSeconds  float64 `json:"dueSeconds"` // time during which arrivals were due
	OfferedRate float64 `json:"offeredPerSecond"`
	// AchievedRate: rate of 2xx answers that arrived within dueSeconds; older runs counted all
	AchievedRate float64 `json:"achievedPerSecond"`
	// Latency: lag + connect + service, of all sent requests including failed ones
	Latency Latency `json:"latency"`
	// External: Latency without the generator's lag and stalls
	External Latency `json:"external"`
	Lag      Latency `json:"lag"` // from the intended start until the generator began to handle the request
	// Connect: waiting for a free stream or a dial
	Connect Latency `json:"connect"`
	Service Latency `json:"service"` // from the end of connect until the last byte of the answer
	Bytes   int64   `json:"bytes"`   // bytes of the answers' bodies, on the wire
	Pages   int64   `json:"pages,omitempty"`
}

// AnsweredInPhase returns the number of 2xx responses that arrived during the phase. For older runs, which did not
// record this number, it returns the number of 2xx responses to the phase's requests.
func (r Requests) AnsweredInPhase() int64 {
	if r.Answered == nil {
		return r.Succeeded
	}
	return *r.Answered
}

// Watches holds the results of one set of watches in a phase.
type Watches struct {
	Load     string `json:"load"`
	Resource string `json:"resource"`
	Wanted   int    `json:"wanted"`
	Open     int    `json:"open"` // established at the phase's end
	// Due: watches that were due to open by the phase's end; absent if not recorded
	Due      int              `json:"due,omitempty"`
	Failed   int64            `json:"failed"`
	Failures map[string]int64 `json:"failures,omitempty"` // failed attempts by outcome, as in Requests
	// Refusals: failed attempts by status and message of the API server, such as "429 storage is (re)initializing"
	Refusals    map[string]int64 `json:"refusals,omitempty"`
	OpenLatency Latency          `json:"openLatency"` // intended start to response headers
	Expected    int64            `json:"expected"`    // acknowledged writes multiplied by their watches
	Delivered   int64            `json:"delivered"`   // first deliveries
	Lost        int64            `json:"lost"`        // expected - delivered, after the drain at the end
	Duplicated  int64            `json:"duplicated"`  // repeated deliveries of one write
	Reordered   int64            `json:"reordered"`   // deliveries older than one already seen
	// BeforeAck: deliveries before the acknowledgement of the write; their latency counts as zero, or as the length of the
	// generator's stall in which the acknowledgement was noticed
	BeforeAck int64 `json:"beforeAck"`
	// Late: deliveries after the write was counted as lost; not in delivered
	Late            int64   `json:"late,omitempty"`
	Events          int64   `json:"events"` // all events that were read
	Bookmarks       int64   `json:"bookmarks"`
	Reconnects      int64   `json:"reconnects"`          // watches resumed by resourceVersion
	Relists         int64   `json:"relists"`             // watches that had to list again (410)
	Delivery        Latency `json:"delivery"`            // time from the acknowledgement of the write to the delivery
	External        Latency `json:"external"`            // Delivery without the generator's stalls
	SlowestPerWatch Latency `json:"slowestPerWatch"`     // shows whether one watcher is slow, or all
	Lossy           int     `json:"lossy"`               // watches that lost an event
	WorstLost       int64   `json:"worstLost"`           // events that the worst watch lost
	Bytes           int64   `json:"bytes"`               // bytes of all events
	Malformed       int64   `json:"malformed,omitempty"` // streams abandoned because their data was not an event
	Slow            int     `json:"slow,omitempty"`      // intentionally slow consumers; not in delivery
}

// Changes holds the results of one stream of measured writes in a phase.
type Changes struct {
	Requests
	Acknowledged int64 `json:"acknowledged"` // writes that every watch must deliver exactly once
}

// Workload is the progress of pods in a phase. Times are the arrival times of watch events at the generator.
type Workload struct {
	PodsCreated int64 `json:"podsCreated"`
	PodsReady   int64 `json:"podsReady"`
	PodsDeleted int64 `json:"podsDeleted"`
	// PodsUnmeasured: pods that were first seen in a list instead of a watch event; not in the distributions
	PodsUnmeasured int64     `json:"podsUnmeasured,omitempty"`
	Reconnects     int64     `json:"reconnects,omitempty"`
	Relists        int64     `json:"relists,omitempty"`
	ToScheduled    Latency   `json:"toScheduled"`        // time from when the pod was first seen until it was bound to a node
	ToReady        Latency   `json:"toReady"`            // time from binding until Ready
	Startup        Latency   `json:"startup"`            // time from when the pod was first seen until Ready
	External       Latency   `json:"external"`           // Startup without the generator's stalls
	ToEndpoint     Latency   `json:"toEndpoint"`         // time from Ready until the pod was in an EndpointSlice
	Rollouts       []Rollout `json:"rollouts,omitempty"` // rollouts that began in this phase
	// NotReadyAfter: from the node failure until all failed nodes were seen NotReady
	NotReadyAfter *float64 `json:"notReadyAfterSeconds,omitempty"`
	// RecoveredAfter: from the node failure until every workload was complete again
	RecoveredAfter *float64 `json:"recoveredAfterSeconds,omitempty"`
}

// Rollout is one change of a workload, followed through the control plane.
type Rollout struct {
	Deployment string    `json:"deployment"`
	Action     string    `json:"action"`   // deploy, rollingUpdate or scale
	Pods       int64     `json:"pods"`     // number of new pods
	Began      time.Time `json:"began"`    // just before the change was sent
	Complete   bool      `json:"complete"` // all new pods reached the last hop
	Hops       []Hop     `json:"hops"`
}

// Hop is one step of a rollout. Its times are when the first and the last object of the step arrived at the generator, in
// seconds since the rollout began.
type Hop struct {
	// Name: "api write" (acknowledged), "replicaset" (created and scaled), "pods" (created), "binding",
	// "ready" or "endpointslice" (for a Deployment with a Service)
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	First *float64 `json:"firstSeconds,omitempty"`
	Last  *float64 `json:"lastSeconds,omitempty"`
}

// Nodes holds the results of the simulated kubelets over the whole run.
type Nodes struct {
	Count               int     `json:"count"`
	Fidelity            string  `json:"fidelity"`                      // kubelet, lean or shared
	ReadySeconds        float64 `json:"readySeconds"`                  // time from the start of registration until all nodes were Ready
	ReadyStalledSeconds float64 `json:"readyStalledSeconds,omitempty"` // part of readySeconds in which the generator was stalled
	Heartbeats          int64   `json:"heartbeats"`                    // acknowledged lease renewals
	// MissedByGenerator: renewals that began more than one interval late, and renewals that were not acknowledged before the
	// next was due because the generator's own delay was more than half of that time
	MissedByGenerator int64 `json:"missedByGenerator"`
	// MissedByServer: other renewals that were not acknowledged before the next was due
	MissedByServer int64            `json:"missedByServer"`
	Delayed        int64            `json:"delayed,omitempty"` // renewals over 1.05 intervals after the previous one, as on slow kubelets
	Heartbeat      Latency          `json:"heartbeat"`         // renewals, from their intended start
	StatusWrites   int64            `json:"statusWrites"`
	PodsStarted    int64            `json:"podsStarted"`
	PodsStopped    int64            `json:"podsStopped"`
	Watches        int64            `json:"watches"`          // maximum number of open watches
	Reconnects     int64            `json:"reconnects"`       // watches resumed by resourceVersion
	Relists        int64            `json:"relists"`          // watches that had to list again (410)
	Errors         map[string]int64 `json:"errors,omitempty"` // failed requests by verb, resource and status: "patch pods/status 409"
	// PodLives: events of pods with a life, by life and event, such as "container_restarted"
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
	BacklogMax     int64   `json:"backlogMaxBytes"` // data received from API servers and not yet read
	SchedulingLag  Latency `json:"schedulingLag"`   // lateness of a 10 ms ticker
	// Saturated: bounds that the generator exceeded, so that the run could not be judged
	Saturated []string `json:"saturated,omitempty"`
}

// Scrapes counts the recorder's scrapes.
type Scrapes struct {
	Done   int64            `json:"done"`
	Failed map[string]int64 `json:"failed,omitempty"` // failed scrapes by instance
}
