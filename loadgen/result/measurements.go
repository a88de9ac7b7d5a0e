package result

import "time"

// Measurements is measurements.json: the generator's own exact measurements.
type Measurements struct {
	Phases    []Phase   `json:"phases"`
	Nodes     *Nodes    `json:"nodes,omitempty"`
	Histories []History `json:"histories,omitempty"` // of loads of kind "history"
	Replays   []Replay  `json:"replays,omitempty"`   // of loads of kind "replay"
	Generator Generator `json:"generator"`
	Workers   []Worker  `json:"workers,omitempty"` // of a run with several generators
	Scrapes   Scrapes   `json:"scrapes"`
}

// Phase is one stamped phase.
type Phase struct {
	Name         string    `json:"name"`                  // unique in the scenario
	Start        time.Time `json:"start"`                 // of the scrape that begins it
	End          time.Time `json:"end"`                   // of the scrape that ends it
	Until        string    `json:"until,omitempty"`       // condition; empty for a fixed length
	ConditionMet bool      `json:"conditionMet"`          // within its bound
	Interrupted  bool      `json:"interrupted,omitempty"` // by the user or a failure
	// EndedEarly: the user ended the phase and went on with the next; what it measured is not judged
	EndedEarly bool `json:"endedEarly,omitempty"`
	// PausedSeconds: the user paused load; what the phase measured is not judged
	PausedSeconds float64 `json:"pausedSeconds,omitempty"`
	// Reached: how far a condition over objects had come that was not met, as "913 of 1000 pods"
	Reached string `json:"reached,omitempty"`
	// Saturated: bounds that the generator passed; its measurements in the phase are not judged
	Saturated []string `json:"saturated,omitempty"`
	// StalledSeconds: the generator was stopped, or late by 10 ms and more
	StalledSeconds float64 `json:"stalledSeconds,omitempty"`

	Requests []Requests `json:"requests,omitempty"`
	Watches  []Watches  `json:"watches,omitempty"`
	Changes  []Changes  `json:"changes,omitempty"`
	Workload *Workload  `json:"workload,omitempty"` // progress of pods
	Custom   []Custom   `json:"custom,omitempty"`   // by measurements of the Go program that ran the scenario
	Machine  *Machine   `json:"machine,omitempty"`  // of Linux
	// Transitions: of objects, each of those that got to its first state in the phase
	Transitions []Transition `json:"transitions,omitempty"`
	Actions     []Action     `json:"actions,omitempty"` // on objects, with a rate or repeated
	// Deliveries: what loads and actions did of what they were asked; of result.json
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// Machine is what the generator's machine did in a phase.
type Machine struct {
	BusySeconds  float64 `json:"busySeconds"`  // of all processors, for any process
	OwnSeconds   float64 `json:"ownSeconds"`   // of these for the generator and what it started
	StealSeconds float64 `json:"stealSeconds"` // taken by the hypervisor
	// Processors: of the machine; absent: not recorded
	Processors int `json:"processors,omitempty"`
	// CPUWaitSeconds, MemoryWaitSeconds, IOWaitSeconds: some process waited, as the kernel's
	// pressure stall information has it
	CPUWaitSeconds    *float64 `json:"cpuWaitSeconds,omitempty"`
	MemoryWaitSeconds *float64 `json:"memoryWaitSeconds,omitempty"`
	IOWaitSeconds     *float64 `json:"ioWaitSeconds,omitempty"`
	// ClientRequests: that the API servers answered to clients other than the run and the
	// plane's components; judging fills it in from the archive; absent: not known
	ClientRequests *float64 `json:"clientRequests,omitempty"`
	// ClientSeconds: of busySeconds that these clients may have used; judging fills it in
	ClientSeconds *float64 `json:"clientSeconds,omitempty"`
	// GeneratorSeconds: the part of ownSeconds that the generator's own process used; absent: not recorded
	GeneratorSeconds float64 `json:"generatorSeconds,omitempty"`
	// Busy: why what took time in the phase was measured on a busy machine; judging fills it
	// in; absent: it was not
	Busy string `json:"busy,omitempty"`
	// Notes: the facts of the machine in words; judging fills them in
	Notes []string `json:"notes,omitempty"`
}

// Seconds is the length of the phase.
func (p Phase) Seconds() float64 { return p.End.Sub(p.Start).Seconds() }

// Steered reports whether the user paused load in the phase or ended it early.
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
	// P99Upper: with 99% confidence the p99 is not over it; absent below 459 values, which cannot tell
	P99Upper *float64 `json:"p99UpperSeconds,omitempty"`
	// Clamped: values past the range: quantiles that reach them read low
	Clamped int64 `json:"clamped,omitempty"`
}

// Requests holds the results of one load's requests with intended starts in a phase.
type Requests struct {
	Load     string `json:"load"`
	Verb     string `json:"verb"`     // get, list, create, update, patch, delete or apply
	Resource string `json:"resource"` // as configmaps or deployments.apps
	// Variant: tells operations of one verb and resource apart, as "rv=0"
	Variant string `json:"variant,omitempty"`
	Tenant  string `json:"tenant,omitempty"` // empty: the load's own identity
	Offered int64  `json:"offered"`          // arrivals; sent + unsent
	Sent    int64  `json:"sent"`
	Unsent  int64  `json:"unsent"` // arrivals without a free slot under maxInFlight
	// Outcomes: by HTTP status ("200"), failures by kind: "timeout", "reset", "refused",
	// "truncated", "malformed", "goaway", "protocol", "canceled", "other"
	Outcomes  map[string]int64 `json:"outcomes"`
	Succeeded int64            `json:"succeeded"` // 2xx answers
	// UnsentLate: came to over 100 ms late, or just after a stop as long
	UnsentLate int64 `json:"unsentLate,omitempty"`
	// FailedLate: over half of their time was the generator's own delay
	FailedLate int64 `json:"failedLate,omitempty"`
	// Answered: 2xx answers that came in the phase, whenever their requests were sent; absent:
	// not recorded
	Answered *int64 `json:"answered,omitempty"`
	// Overdue: of answered, those that came after the last arrival of the load was due
	Overdue int64 `json:"overdue,omitempty"`
	// Backlog: sent in the phase or before, and without an answer at its end
	Backlog     int64   `json:"backlog,omitempty"`
	DueSeconds  float64 `json:"dueSeconds"` // with arrivals due
	OfferedRate float64 `json:"offeredPerSecond"`
	// AchievedRate: 2xx answers that came in DueSeconds; older runs counted all
	AchievedRate float64 `json:"achievedPerSecond"`
	// Latency: lag + connect + service, of all sent requests, failed ones included
	Latency Latency `json:"latency"`
	// External: Latency without the generator's lag and stalls
	External Latency `json:"external"`
	Lag      Latency `json:"lag"` // until the generator took the request up
	// Connect: wait for a free stream or a dial
	Connect Latency `json:"connect"`
	Service Latency `json:"service"` // then until the last byte of the answer
	Bytes   int64   `json:"bytes"`   // of answers' bodies, on the wire
	Pages   int64   `json:"pages,omitempty"`
}

// AnsweredInPhase counts the 2xx answers that came in the phase; of runs of old, which did not record it, all to its requests.
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
	// Due: whose opening was due by the phase's end; absent: not recorded
	Due      int              `json:"due,omitempty"`
	Failed   int64            `json:"failed"`
	Failures map[string]int64 `json:"failures,omitempty"` // by outcome, as in Requests
	// Refusals: of the failed attempts, by status and the API server's message, as "429 storage is (re)initializing"
	Refusals    map[string]int64 `json:"refusals,omitempty"`
	OpenLatency Latency          `json:"openLatency"` // intended start to response headers
	Expected    int64            `json:"expected"`    // acknowledged writes times their watches
	Delivered   int64            `json:"delivered"`   // first deliveries
	Lost        int64            `json:"lost"`        // expected - delivered, after the drain at the end
	Duplicated  int64            `json:"duplicated"`  // further deliveries of one write
	Reordered   int64            `json:"reordered"`   // deliveries older than one already seen
	// BeforeAck: deliveries before the acknowledgement: of latency zero, or of the stall in
	// which it was seen
	BeforeAck int64 `json:"beforeAck"`
	// Late: after the write was counted as lost; not in Delivered
	Late            int64   `json:"late,omitempty"`
	Events          int64   `json:"events"` // all that were read
	Bookmarks       int64   `json:"bookmarks"`
	Reconnects      int64   `json:"reconnects"`          // watches resumed by resourceVersion
	Relists         int64   `json:"relists"`             // watches that had to list again (410)
	Delivery        Latency `json:"delivery"`            // from the write's acknowledgement
	External        Latency `json:"external"`            // Delivery without the generator's stalls
	SlowestPerWatch Latency `json:"slowestPerWatch"`     // is one watcher slow, or all?
	Lossy           int     `json:"lossy"`               // watches that lost an event
	WorstLost       int64   `json:"worstLost"`           // events that the worst watch lost
	Bytes           int64   `json:"bytes"`               // of events
	Malformed       int64   `json:"malformed,omitempty"` // streams given up: their data was no event
	Slow            int     `json:"slow,omitempty"`      // consumers slow on purpose; not in Delivery
}

// Changes holds the results of one stream of measured writes in a phase.
type Changes struct {
	Requests
	Acknowledged int64 `json:"acknowledged"` // writes that every watch must deliver once
}

// Workload is the progress of pods in a phase, by arrival of watch events at the
// generator.
type Workload struct {
	PodsCreated int64 `json:"podsCreated"`
	PodsReady   int64 `json:"podsReady"`
	PodsDeleted int64 `json:"podsDeleted"`
	// PodsUnmeasured: first seen in a list; not in the distributions
	PodsUnmeasured int64     `json:"podsUnmeasured,omitempty"`
	Reconnects     int64     `json:"reconnects,omitempty"`
	Relists        int64     `json:"relists,omitempty"`
	ToScheduled    Latency   `json:"toScheduled"`        // first seen until bound to a node
	ToReady        Latency   `json:"toReady"`            // bound until Ready
	Startup        Latency   `json:"startup"`            // first seen until Ready
	External       Latency   `json:"external"`           // Startup without the generator's stalls
	ToEndpoint     Latency   `json:"toEndpoint"`         // Ready until in an EndpointSlice
	Rollouts       []Rollout `json:"rollouts,omitempty"` // begun in this phase
	// NotReadyAfter: node failure until all failed nodes were seen NotReady
	NotReadyAfter *float64 `json:"notReadyAfterSeconds,omitempty"`
	// RecoveredAfter: node failure until every workload was whole again
	RecoveredAfter *float64 `json:"recoveredAfterSeconds,omitempty"`
}

// Rollout is one change of a workload on its way through the control plane.
type Rollout struct {
	Deployment string    `json:"deployment"`
	Action     string    `json:"action"`   // deploy, rollingUpdate or scale
	Pods       int64     `json:"pods"`     // new ones
	Began      time.Time `json:"began"`    // just before the change was sent
	Complete   bool      `json:"complete"` // all new pods got to the last hop
	Hops       []Hop     `json:"hops"`
}

// Hop is one step of a rollout: when its first and its last piece arrived at the
// generator, in seconds since the rollout began.
type Hop struct {
	// Name: "api write" (acknowledged), "replicaset" (made and scaled), "pods" (made), "binding",
	// "ready", "endpointslice" (of a Deployment with a Service)
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	First *float64 `json:"firstSeconds,omitempty"`
	Last  *float64 `json:"lastSeconds,omitempty"`
}

// Nodes holds the results of the simulated kubelets over the whole run.
type Nodes struct {
	Count               int     `json:"count"`
	Fidelity            string  `json:"fidelity"`                      // kubelet, lean or shared
	ReadySeconds        float64 `json:"readySeconds"`                  // start of registration until all were Ready
	ReadyStalledSeconds float64 `json:"readyStalledSeconds,omitempty"` // of these, stalled
	Heartbeats          int64   `json:"heartbeats"`                    // acknowledged lease renewals
	// MissedByGenerator: renewals begun over one interval late, or not acknowledged before
	// the next was due where over half of that time was the generator's
	MissedByGenerator int64 `json:"missedByGenerator"`
	// MissedByServer: others not acknowledged before the next was due
	MissedByServer int64            `json:"missedByServer"`
	Delayed        int64            `json:"delayed,omitempty"` // begun over 5% of the interval late after the one before, as on slow kubelets
	Heartbeat      Latency          `json:"heartbeat"`         // renewals, from their intended start
	StatusWrites   int64            `json:"statusWrites"`
	PodsStarted    int64            `json:"podsStarted"`
	PodsStopped    int64            `json:"podsStopped"`
	Watches        int64            `json:"watches"`          // at the peak
	Reconnects     int64            `json:"reconnects"`       // watches resumed by resourceVersion
	Relists        int64            `json:"relists"`          // watches that had to list again (410)
	Errors         map[string]int64 `json:"errors,omitempty"` // as "patch pods/status 409"
	// PodLives: what happened to pods with a life, by life and event, as "container_restarted"
	PodLives map[string]map[string]int64 `json:"podLives,omitempty"`
}

// Generator is the generator's own cost and fitness.
type Generator struct {
	CPUSeconds     float64 `json:"cpuSeconds"`
	MaxRSSBytes    int64   `json:"maxRSSBytes"`
	MaxGoroutines  int     `json:"maxGoroutines"`
	MaxDescriptors int     `json:"maxDescriptors"`
	GCPauseP99     float64 `json:"gcPauseP99Seconds"`
	GCPauseMax     float64 `json:"gcPauseMaxSeconds"`
	GCCPU          float64 `json:"gcCPUSeconds"`
	BacklogMax     int64   `json:"backlogMaxBytes"` // sent by API servers and not read yet
	SchedulingLag  Latency `json:"schedulingLag"`   // lateness of a 10 ms ticker
	// Saturated: bounds that were passed: the run could not be judged
	Saturated []string `json:"saturated,omitempty"`
}

// Scrapes counts the recorder's scrapes.
type Scrapes struct {
	Done   int64            `json:"done"`
	Failed map[string]int64 `json:"failed,omitempty"` // by instance
}
