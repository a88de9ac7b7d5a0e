package result

import "time"

// PulseFile holds ten samples per second of each load.
const PulseFile = "pulse.jsonl"

// Recovery holds the effects of a run's faults and the time to recover from them:
// docs/reference/recovery.md.
type Recovery struct {
	// SlotSeconds: resolution of times derived from requests
	SlotSeconds float64 `json:"slotSeconds"`
	// StretchSeconds: how long a load must stay within its bound to be back, and for a series of failures to be over
	StretchSeconds float64         `json:"stretchSeconds"`
	Faults         []FaultRecovery `json:"faults,omitempty"`
	Handovers      []Handover      `json:"handovers,omitempty"` // changes of lease holders and of etcd's leader, sorted by time
	Restarts       []Restart       `json:"restarts,omitempty"`  // sorted by the end of the old process
	Missing        []string        `json:"missing,omitempty"`   // figures that were not computed, and why
}

// FaultRecovery is one fault and its effects until the next fault begins.
type FaultRecovery struct {
	ID     string    `json:"id"`   // ID in the timeline
	Kind   string    `json:"kind"` // kind, as in the scenario
	On     []string  `json:"on,omitempty"`
	Detail string    `json:"detail,omitempty"`
	Phase  string    `json:"phase"` // the phase in which it began
	Begin  time.Time `json:"begin"` // when the fault took effect
	// End: when the fault was undone; null: not before the end of the recording
	End            *time.Time     `json:"end,omitempty"`
	Loads          []LoadRecovery `json:"loads,omitempty"` // loads that ran when the fault began, or later
	Relists        RelistStorm    `json:"relistStorm"`
	LeaseFailover  *float64       `json:"leaseFailoverSeconds,omitempty"` // the longest failover of a lease
	LeaderFailover *float64       `json:"leaderFailoverSeconds,omitempty"`
	// Leaderless: roles whose leader ended and for which no new leader was observed
	Leaderless []string `json:"unled,omitempty"`
}

// LoadRecovery holds the effect of a fault on one request load.
// docs/reference/recovery.md defines the figures.
type LoadRecovery struct {
	Load string `json:"load"`
	// Bound: the maximum latency that each request may have
	Bound float64 `json:"boundSeconds"`
	// Affected: between the start of the fault and the recovery of the load or the next fault, a
	// request failed, was not sent or exceeded the bound
	Affected    bool             `json:"affected"`
	Silent      bool             `json:"silent,omitempty"` // no request ended before the next fault: the effect is unknown
	ErrorWindow float64          `json:"errorWindowSeconds"`
	Open        bool             `json:"errorWindowOpen,omitempty"` // the load was outside its bound up to the last slot
	From        *float64         `json:"fromSeconds,omitempty"`     // start of the error window, since the start of the fault
	Until       *float64         `json:"untilSeconds,omitempty"`    // end of the error window, since the start of the fault
	Succeeded   int64            `json:"succeeded"`                 // 2xx answers in the error window, including slow ones
	Failed      int64            `json:"failed"`                    // failed requests in the error window
	Unsent      int64            `json:"unsent"`                    // unsent requests in the error window
	SlowSlots   int64            `json:"slowSlots"`                 // slots without a failure, but with latencies over the bound
	Outcomes    map[string]int64 `json:"outcomes,omitempty"`        // outcomes of failed requests, as in Requests
	Slowest     float64          `json:"slowestSeconds"`
	// FirstSuccess: time from the start of the fault to the first success after a failure; null: nothing failed, or nothing
	// succeeded later
	FirstSuccess *float64 `json:"firstSuccessSeconds,omitempty"`
	// FirstSuccessAfterEnd: the same time, counted from the end of the fault; negative if the success was
	// during the fault
	FirstSuccessAfterEnd *float64 `json:"firstSuccessAfterEndSeconds,omitempty"`
	// Back: time from the end of the fault until the load was back; null: the load was not back, or the phase was too short
	Back *float64 `json:"backSeconds,omitempty"`
	// BackAtLeast: lower bound of back; null if back is known
	BackAtLeast    *float64 `json:"backAtLeastSeconds,omitempty"`
	AlreadyFailing bool     `json:"alreadyFailing,omitempty"` // the load was outside its bound before the fault
	Detail         string   `json:"detail,omitempty"`         // why a figure is missing, or what limits it
}

// RelistStorm counts relists from the start of a fault until WithinSeconds after its end.
type RelistStorm struct {
	Relists int64 `json:"relists"` // relists of all watch loads, histories and nodes
	Breaks  int64 `json:"breaks"`  // streams that ended unexpectedly
	// WithinSeconds: how long relists count after the end of the fault; the next fault ends the count earlier
	WithinSeconds float64          `json:"withinSeconds"`
	PeakPerSecond int64            `json:"peakPerSecond"`
	Last          *float64         `json:"lastSeconds,omitempty"` // time from the start of the fault to the last relist
	ByLoad        map[string]int64 `json:"byLoad,omitempty"`      // relists of nodes are under "simulated nodes"
}

// Handover is a change of a lease's holder or of etcd's leader.
type Handover struct {
	Of   string    `json:"of"`             // etcd, kube-scheduler or kube-controller-manager
	From string    `json:"from,omitempty"` // empty: unknown
	To   string    `json:"to"`
	At   time.Time `json:"at"` // when the new holder was observed
	// Lost: when the old holder lost the lease or the leadership; null: unknown
	Lost     *time.Time `json:"lost,omitempty"`
	Failover *float64   `json:"failoverSeconds,omitempty"` // time from lost to at
	Fault    string     `json:"fault,omitempty"`           // ID of its cause
	Phase    string     `json:"phase,omitempty"`
}

// Restart is the end of a component's process and the start of its successor.
type Restart struct {
	Component string     `json:"component"`
	Exited    *time.Time `json:"exited,omitempty"`      // null: unknown
	Ready     *time.Time `json:"ready,omitempty"`       // null: it was not ready again
	Down      *float64   `json:"downSeconds,omitempty"` // time from exited to ready
	Fault     string     `json:"fault,omitempty"`       // ID of its cause
}

// Signal is a metric of an incident, judged against its own noise. Values are in the signal's unit: docs/reference/recovery.md.
type Signal struct {
	Name   string        `json:"name"`           // unique in the scenario
	Expr   string        `json:"expr"`           // PromQL
	Unit   string        `json:"unit,omitempty"` // unit, as in a gate
	Steady SignalWindow  `json:"steady"`
	Under  SignalWindow  `json:"under"` // while the fault was in force
	After  *SignalWindow `json:"after,omitempty"`
	// Noise: standard deviation of the steady samples, or the minimum noise
	Noise float64 `json:"noise"`
	Floor bool    `json:"noiseFloor,omitempty"` // the minimum noise was used
	// Extreme: mean of the highest or lowest third of the under samples
	Extreme float64  `json:"extreme"`
	Moved   *float64 `json:"movedNoises,omitempty"`
	// Returned: the signal came back to the steady mean
	Returned *bool    `json:"returned,omitempty"`
	Last     *float64 `json:"last,omitempty"`   // mean of the last third of the after samples
	Detail   string   `json:"detail,omitempty"` // why the signal could not be judged
}

// SignalWindow is a signal's samples in some phases.
type SignalWindow struct {
	Phases  []string      `json:"phases"`
	Samples int           `json:"samples"`
	Mean    float64       `json:"mean"`
	Min     float64       `json:"min"`
	Max     float64       `json:"max"`
	StdDev  float64       `json:"stdDev"` // with n - 1; zero for fewer than two samples
	Points  []SignalPoint `json:"points,omitempty"`
}

// SignalPoint is one sample of a signal.
type SignalPoint struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
}
