package result

import "time"

// Measurements is measurements.json: what the generator saw itself, exact,
// not derived from scraped metrics.
type Measurements struct {
	Phases []Phase `json:"phases"`          // in the order in which they ran
	Nodes  *Nodes  `json:"nodes,omitempty"` // the simulated kubelets, if there were any
	// Histories are those of loads of kind "history", over the whole run.
	Histories []History `json:"histories,omitempty"`
	Generator Generator `json:"generator"` // its own cost and fitness
	// Scrapes counts scrapes by the recorder, and those that failed.
	Scrapes Scrapes `json:"scrapes"`
}

// Phase is one stamped phase.
type Phase struct {
	Name  string    `json:"name"`  // unique in the scenario
	Start time.Time `json:"start"` // time of the scrape that begins the phase
	End   time.Time `json:"end"`   // time of the scrape that ends it
	// Until is the condition awaited, empty for a phase of fixed length.
	Until string `json:"until,omitempty"`
	// ConditionMet reports whether Until held before the phase's `within`.
	ConditionMet bool `json:"conditionMet"`
	// Interrupted: the phase was cut short, by the user or by a failure.
	Interrupted bool `json:"interrupted,omitempty"`
	// Saturated says in a line each which of its bounds the generator passed in
	// the phase: what it measured itself in it cannot be judged.
	Saturated []string `json:"saturated,omitempty"`
	// StalledSeconds is for how long the generator was not run in the phase:
	// stopped, or late by 10 ms and more.
	StalledSeconds float64 `json:"stalledSeconds,omitempty"`

	Requests []Requests `json:"requests,omitempty"` // open-loop request loads
	Watches  []Watches  `json:"watches,omitempty"`  // sets of watches
	Changes  []Changes  `json:"changes,omitempty"`  // streams of measured writes
	Workload *Workload  `json:"workload,omitempty"` // progress of pods
}

// Seconds is the length of the phase.
func (p Phase) Seconds() float64 { return p.End.Sub(p.Start).Seconds() }

// Latency is a distribution in seconds, from an HDR histogram with three
// significant digits.
type Latency struct {
	Count int64   `json:"count"`       // how many values
	Mean  float64 `json:"meanSeconds"` // their exact mean
	P50   float64 `json:"p50Seconds"`  // median
	P90   float64 `json:"p90Seconds"`  // 90th percentile
	P95   float64 `json:"p95Seconds"`  // 95th percentile
	P99   float64 `json:"p99Seconds"`  // 99th percentile
	P999  float64 `json:"p999Seconds"` // 99.9th percentile
	Max   float64 `json:"maxSeconds"`  // the largest value, exact
	// Clamped counts values past the histogram's range: they are in its last
	// bucket, so quantiles that reach them read low. Max and Mean are exact.
	Clamped int64 `json:"clamped,omitempty"`
}

// Requests holds the results of one open-loop request load in a phase. A request
// belongs to the phase of its intended start.
type Requests struct {
	Load     string `json:"load"`     // the load's name in the scenario
	Verb     string `json:"verb"`     // get, list, create, update, patch, delete or apply
	Resource string `json:"resource"` // as configmaps or deployments.apps
	// Variant tells operations of a mix apart that have the same verb and
	// resource, as "rv=0", "limit=500" or "table"; empty: nothing special was asked.
	Variant string `json:"variant,omitempty"`
	// Tenant the requests were made as; empty: the load's own identity.
	Tenant string `json:"tenant,omitempty"`
	// Offered is the number of arrivals the schedule asked for; Sent those
	// that went out; Unsent those that could not, for want of a free slot
	// under maxInFlight. Offered = Sent + Unsent.
	Offered int64 `json:"offered"`
	Sent    int64 `json:"sent"`   // arrivals that went out
	Unsent  int64 `json:"unsent"` // arrivals that found no free slot
	// Outcomes counts answers by HTTP status ("200", "429") or by the kind
	// of failure ("timeout", "reset", "refused", "truncated", "malformed",
	// "goaway", "protocol", "canceled", "other").
	Outcomes map[string]int64 `json:"outcomes"`
	// Succeeded counts 2xx answers.
	Succeeded int64 `json:"succeeded"`
	// UnsentLate counts those of Unsent that the generator came to over 100 ms late,
	// or just after it had been stopped for as long.
	UnsentLate int64 `json:"unsentLate,omitempty"`
	// FailedLate counts requests that failed after more than half of their time was
	// the generator's own delay.
	FailedLate int64 `json:"failedLate,omitempty"`
	// DueSeconds is for how long arrivals were due in the phase: without the time
	// that the last requests took to end.
	DueSeconds float64 `json:"dueSeconds"`
	// OfferedRate and AchievedRate (2xx answers) are per second in which arrivals were due.
	OfferedRate  float64 `json:"offeredPerSecond"`
	AchievedRate float64 `json:"achievedPerSecond"` // 2xx answers per second in which arrivals were due
	// Latency counts from the intended start to the last byte of the
	// answer, over all sent requests, failed ones included.
	Latency Latency `json:"latency"`
	// External is Latency without what may have been the generator's own delay:
	// lag, and the time in which it was stopped or ran late when the answer came.
	External Latency `json:"external"`
	// Lag is from the intended start until the generator took the request up:
	// its own delay.
	Lag Latency `json:"lag"`
	// Connect is from there until the request was handed to a connection:
	// the wait for a free stream, or for a connection to be made.
	Connect Latency `json:"connect"`
	// Service is from there to the last byte of the answer. Latency = Lag +
	// Connect + Service for every request.
	Service Latency `json:"service"`
	// Bytes of answers' bodies, as they came over the wire.
	Bytes int64 `json:"bytes"`
	// Pages of lists that go on to their last page.
	Pages int64 `json:"pages,omitempty"`
}

// Watches holds the results of one set of watches in a phase.
type Watches struct {
	Load     string `json:"load"`     // the load's name in the scenario
	Resource string `json:"resource"` // what is watched
	// Wanted is how many the scenario asked for, Open how many are
	// established at the phase's end, Failed how many attempts failed.
	Wanted int   `json:"wanted"`
	Open   int   `json:"open"`   // established at the phase's end
	Failed int64 `json:"failed"` // attempts to open one that failed
	// Failures are the failed attempts by HTTP status or kind of failure, as in Requests.
	Failures map[string]int64 `json:"failures,omitempty"`
	// OpenLatency counts from a watch's intended start to its response headers.
	OpenLatency Latency `json:"openLatency"`
	// Expected is acknowledged writes times watches that had to see them.
	Expected int64 `json:"expected"`
	// Delivered counts first deliveries of measured writes; Lost = Expected - Delivered
	// after the drain at the end; Duplicated counts further deliveries of the same write;
	// Reordered counts deliveries older than one already seen.
	Delivered  int64 `json:"delivered"`
	Lost       int64 `json:"lost"`       // expected and never delivered
	Duplicated int64 `json:"duplicated"` // delivered more than once
	Reordered  int64 `json:"reordered"`  // delivered after a newer one
	// BeforeAck counts deliveries that arrived before the write's
	// acknowledgement; their latency is recorded as zero, or as the stall of the
	// generator's that the acknowledgement was seen in.
	BeforeAck int64 `json:"beforeAck"`
	// Late counts deliveries of writes so old that the ledger of outstanding
	// writes had given them up: they are in Lost already, and are neither
	// Delivered nor Duplicated.
	Late int64 `json:"late,omitempty"`
	// Events counts every event read, bookmarks and foreign ones included.
	Events    int64 `json:"events"`
	Bookmarks int64 `json:"bookmarks"` // bookmark events read
	// Reconnects counts watches that ended and were resumed by
	// resourceVersion; Relists those that had to list again (410).
	Reconnects int64 `json:"reconnects"`
	Relists    int64 `json:"relists"` // watches that had to list again (410)
	// Delivery is the latency from the write's acknowledgement: from the earliest time
	// that it may have come, where it was seen in a stall of 10 ms and more.
	Delivery Latency `json:"delivery"`
	// External is Delivery without what may have been the generator's own delay.
	External Latency `json:"external"`
	// SlowestPerWatch is the distribution over the watches of each one's
	// slowest delivery: whether one watcher or all of them are slow.
	SlowestPerWatch Latency `json:"slowestPerWatch"`
	// Lossy is how many watches lost an event, WorstLost how many the worst lost.
	Lossy     int   `json:"lossy"`
	WorstLost int64 `json:"worstLost"` // events that the worst watch lost
	// Bytes of events read.
	Bytes int64 `json:"bytes"`
	// Malformed counts streams given up because what they brought was no event.
	Malformed int64 `json:"malformed,omitempty"`
	// Slow is how many of the watches were slow consumers on purpose. They owe
	// deliveries as all others do, but are not in Delivery.
	Slow int `json:"slow,omitempty"`
}

// Changes holds the results of one stream of measured writes in a phase.
type Changes struct {
	Requests
	// Acknowledged writes, each of which every watch must deliver once.
	Acknowledged int64 `json:"acknowledged"`
}

// Workload is the progress of pods in a phase, as a watch on them saw it.
// Times are arrivals of watch events at the generator.
type Workload struct {
	// PodsCreated, PodsReady and PodsDeleted in this phase.
	PodsCreated int64 `json:"podsCreated"`
	PodsReady   int64 `json:"podsReady"`   // became Ready in this phase
	PodsDeleted int64 `json:"podsDeleted"` // went away in this phase
	// PodsUnmeasured of those created were first seen in a list and not by an
	// event (after a relist): their times are not in the distributions.
	PodsUnmeasured int64 `json:"podsUnmeasured,omitempty"`
	// Reconnects and Relists of the tracker's own watches.
	Reconnects int64 `json:"reconnects,omitempty"`
	Relists    int64 `json:"relists,omitempty"` // of the tracker's own watches
	// ToScheduled: first seen until bound to a node. ToReady: bound until
	// Ready. Startup: first seen until Ready.
	ToScheduled Latency `json:"toScheduled"`
	ToReady     Latency `json:"toReady"` // bound until Ready
	Startup     Latency `json:"startup"` // first seen until Ready
	// External is Startup without the time in which the generator, its simulated
	// nodes included, was stalled.
	External Latency `json:"external"`
	// ToEndpoint: Ready until in an EndpointSlice, of pods of a Service.
	ToEndpoint Latency `json:"toEndpoint"`
	// Rollouts that were begun in this phase, hop by hop.
	Rollouts []Rollout `json:"rollouts,omitempty"`
	// NotReadyAfter is the time from a node failure until all failed nodes
	// were seen NotReady; RecoveredAfter until every Deployment was whole
	// again. Nil where there was no failure, or it did not happen.
	NotReadyAfter  *float64 `json:"notReadyAfterSeconds,omitempty"`
	RecoveredAfter *float64 `json:"recoveredAfterSeconds,omitempty"` // node failure until every Deployment was whole again
}

// Rollout is one change of a Deployment on its way through the control plane.
type Rollout struct {
	Deployment string    `json:"deployment"` // its name
	Action     string    `json:"action"`     // deploy, rollingUpdate or scale
	Pods       int64     `json:"pods"`       // how many new ones it makes
	Began      time.Time `json:"began"`      // just before the change was sent
	// Complete: all new pods got to the last hop.
	Complete bool  `json:"complete"`
	Hops     []Hop `json:"hops"` // in the order of its way
}

// Hop is one step of a rollout: when its first and its last piece arrived at
// the generator, in seconds since the rollout began.
type Hop struct {
	// Name: "api write" (the change was acknowledged), "replicaset" (seen made
	// and scaled), "pods" (seen made), "binding" (seen with a node), "ready",
	// "endpointslice" (seen ready in one; of a Deployment with a Service).
	Name  string   `json:"name"`
	Count int64    `json:"count"`                  // of pieces that arrived
	First *float64 `json:"firstSeconds,omitempty"` // nil: none arrived
	Last  *float64 `json:"lastSeconds,omitempty"`  // nil: none arrived
}

// Nodes holds the results of the simulated kubelets over the whole run.
type Nodes struct {
	Count    int    `json:"count"`    // of simulated nodes
	Fidelity string `json:"fidelity"` // kubelet or shared
	// ReadySeconds is from the start of registration until all were Ready.
	ReadySeconds float64 `json:"readySeconds"`
	// ReadyStalledSeconds, of ReadySeconds, are those in which the generator was stalled.
	ReadyStalledSeconds float64 `json:"readyStalledSeconds,omitempty"`
	// Heartbeats are lease renewals that were acknowledged.
	Heartbeats int64 `json:"heartbeats"`
	// MissedByGenerator counts renewals not begun within one renew interval of their
	// intended time; MissedByServer those begun in time and not
	// acknowledged before the next was due. Where more than half of the interval
	// had gone by on our side, the miss is the generator's.
	MissedByGenerator int64 `json:"missedByGenerator"`
	MissedByServer    int64 `json:"missedByServer"` // begun in time, not acknowledged before the next was due
	// Delayed counts renewals that were late on purpose: a slowKubelet's.
	Delayed int64 `json:"delayed,omitempty"`
	// Heartbeat is the latency of renewals from their intended start.
	Heartbeat    Latency `json:"heartbeat"`
	StatusWrites int64   `json:"statusWrites"` // node and pod status writes
	PodsStarted  int64   `json:"podsStarted"`  // pods taken through to Ready
	PodsStopped  int64   `json:"podsStopped"`  // pods taken through deletion
	// Watches held at the peak, and how often one had to be resumed or relisted.
	Watches    int64 `json:"watches"`
	Reconnects int64 `json:"reconnects"` // watches resumed by resourceVersion
	Relists    int64 `json:"relists"`    // watches that had to list again
	// Errors by verb, resource and outcome: "patch pods/status 409".
	Errors map[string]int64 `json:"errors,omitempty"`
}

// Generator is the generator's own cost and fitness.
type Generator struct {
	CPUSeconds     float64 `json:"cpuSeconds"`        // user and system time of the generator
	MaxRSSBytes    int64   `json:"maxRSSBytes"`       // largest resident set
	MaxGoroutines  int     `json:"maxGoroutines"`     // most goroutines
	MaxDescriptors int     `json:"maxDescriptors"`    // most open descriptors
	GCPauseP99     float64 `json:"gcPauseP99Seconds"` // 99th percentile of garbage collection pauses
	GCPauseMax     float64 `json:"gcPauseMaxSeconds"` // the longest
	GCCPU          float64 `json:"gcCPUSeconds"`      // CPU time of garbage collection
	// BacklogMax is the most bytes that the API servers had sent and we had
	// not read yet, over all connections of watches and requests.
	BacklogMax int64 `json:"backlogMaxBytes"`
	// SchedulingLag is a 10 ms ticker's lateness: how late the machine runs us.
	SchedulingLag Latency `json:"schedulingLag"`
	// Saturated says in a line each which bound was passed; the run then
	// could not be judged.
	Saturated []string `json:"saturated,omitempty"`
}

// Scrapes counts the recorder's scrapes.
type Scrapes struct {
	Done   int64            `json:"done"`             // scrapes that succeeded or failed, of all targets
	Failed map[string]int64 `json:"failed,omitempty"` // by instance
}
