package result

import "time"

// PulseFile is the file with ten samples per second of each load.
const PulseFile = "pulse.jsonl"

// Recovery holds the effects of a run's faults and the time to recover from them ([recovery](recovery.md)).
type Recovery struct {
	// SlotSeconds: length of a slot. Times derived from requests have this resolution
	SlotSeconds float64 `json:"slotSeconds"`
	// StretchSeconds: how long a load must stay within its bound to count as recovered
	StretchSeconds float64         `json:"stretchSeconds"`
	Faults         []FaultRecovery `json:"faults,omitempty"`
	Handovers      []Handover      `json:"handovers,omitempty"` // sorted by time
	Restarts       []Restart       `json:"restarts,omitempty"`  // sorted by the end of the old process
	Missing        []string        `json:"missing,omitempty"`   // values that were not computed, and why
}

// FaultRecovery holds a fault and its effects. Effects are counted until the next fault begins.
type FaultRecovery struct {
	ID             string         `json:"id"`               // ID of the fault in timeline.jsonl
	Kind           string         `json:"kind"`             // as in the scenario
	On             []string       `json:"on,omitempty"`     // components that the fault affects
	Detail         string         `json:"detail,omitempty"` // more details about the fault
	Phase          string         `json:"phase"`
	Begin          time.Time      `json:"begin"`         // when the fault took effect
	End            *time.Time     `json:"end,omitempty"` // when the fault was undone
	Loads          []LoadRecovery `json:"loads,omitempty"`
	Relists        RelistStorm    `json:"relistStorm"`
	LeaseFailover  *float64       `json:"leaseFailoverSeconds,omitempty"`  // longest failover of a lease
	LeaderFailover *float64       `json:"leaderFailoverSeconds,omitempty"` // longest failover of etcd's leader
	Leaderless     []string       `json:"unled,omitempty"`                 // roles for which no new leader was observed
}

// LoadRecovery is the effect of a fault on one load of requests ([definitions](recovery.md#loads)). Counts of
// requests and the highest latency cover the error window.
type LoadRecovery struct {
	Load        string           `json:"load"`
	Bound       float64          `json:"boundSeconds"`     // latency above which a request counts as too slow
	Affected    bool             `json:"affected"`         // a request failed, was not sent or exceeded the bound
	Silent      bool             `json:"silent,omitempty"` // the effect is unknown: no request ended before the next fault
	ErrorWindow float64          `json:"errorWindowSeconds"`
	Open        bool             `json:"errorWindowOpen,omitempty"` // the error window had not ended at the last slot
	From        *float64         `json:"fromSeconds,omitempty"`     // start of the error window, after the start of the fault
	Until       *float64         `json:"untilSeconds,omitempty"`    // end of the error window, after the start of the fault
	Succeeded   int64            `json:"succeeded"`                 // 2xx responses, including slow ones
	Failed      int64            `json:"failed"`
	Unsent      int64            `json:"unsent"`
	SlowSlots   int64            `json:"slowSlots"`          // slots with no failure, but a latency over the bound
	Outcomes    map[string]int64 `json:"outcomes,omitempty"` // failed requests by outcome, as in [Requests](#requests)
	Slowest     float64          `json:"slowestSeconds"`     // highest latency
	// FirstSuccess: time from the start of the fault to the first success after a failure
	FirstSuccess *float64 `json:"firstSuccessSeconds,omitempty"`
	// FirstSuccessAfterEnd: time from the end of the fault to the first success after a failure; negative if this
	// success was during the fault
	FirstSuccessAfterEnd *float64 `json:"firstSuccessAfterEndSeconds,omitempty"`
	// Back: time from the end of the fault until the load had recovered; absent: not recovered, or the phase was too
	// short
	Back           *float64 `json:"backSeconds,omitempty"`
	BackAtLeast    *float64 `json:"backAtLeastSeconds,omitempty"` // lower bound of backSeconds, if backSeconds is unknown
	AlreadyFailing bool     `json:"alreadyFailing,omitempty"`     // the load was outside its bound already before the fault
	Detail         string   `json:"detail,omitempty"`             // why a value is missing or inexact
}

// RelistStorm counts relists (new lists after a 410) from the start of a fault until withinSeconds after its end, or
// until the next fault begins.
type RelistStorm struct {
	Relists       int64    `json:"relists"`
	Breaks        int64    `json:"breaks"` // watch streams that ended unexpectedly
	WithinSeconds float64  `json:"withinSeconds"`
	PeakPerSecond int64    `json:"peakPerSecond"`
	Last          *float64 `json:"lastSeconds,omitempty"` // time from the start of the fault to the last relist
	// ByLoad: relists by load; the key "simulated nodes" counts relists of nodes
	ByLoad map[string]int64 `json:"byLoad,omitempty"`
}

// Handover is a change of a lease's holder or of etcd's leader.
type Handover struct {
	Of       string     `json:"of"` // etcd, kube-scheduler or kube-controller-manager
	From     string     `json:"from,omitempty"`
	To       string     `json:"to"`
	At       time.Time  `json:"at"`                        // when the new holder was observed
	Lost     *time.Time `json:"lost,omitempty"`            // when the old holder lost the lease or the leadership
	Failover *float64   `json:"failoverSeconds,omitempty"` // time from `lost` to `at`
	Fault    string     `json:"fault,omitempty"`           // ID of the fault that was the cause
	Phase    string     `json:"phase,omitempty"`
}

// Restart is the end of a component's process and the start of its successor.
type Restart struct {
	Component string     `json:"component"`
	Exited    *time.Time `json:"exited,omitempty"`      // when the old process ended
	Ready     *time.Time `json:"ready,omitempty"`       // when the component was ready again; absent: never
	Down      *float64   `json:"downSeconds,omitempty"` // time from `exited` to `ready`
	Fault     string     `json:"fault,omitempty"`       // ID of the fault that was the cause
}

// Signal is a metric of an incident, compared with its own noise ([definitions](recovery.md#signals)). Values are in the
// signal's unit.
type Signal struct {
	Name   string        `json:"name"` // unique in the scenario
	Expr   string        `json:"expr"`
	Unit   string        `json:"unit,omitempty"`
	Steady SignalWindow  `json:"steady"`
	Under  SignalWindow  `json:"under"`
	After  *SignalWindow `json:"after,omitempty"`
	Noise  float64       `json:"noise"`                // standard deviation of the steady samples, or the minimum noise
	Floor  bool          `json:"noiseFloor,omitempty"` // `noise` is the minimum noise
	// Extreme: mean of the highest or the lowest third of the samples in `under`, whichever is farther from the steady
	// mean
	Extreme  float64  `json:"extreme"`
	Moved    *float64 `json:"movedNoises,omitempty"` // difference between `extreme` and the steady mean, divided by `noise`
	Returned *bool    `json:"returned,omitempty"`    // the signal came back to the steady mean
	Last     *float64 `json:"last,omitempty"`        // mean of the last third of the samples in `after`
	Detail   string   `json:"detail,omitempty"`      // why the signal could not be judged
}

// SignalWindow holds a signal's samples in the phases before, during or after the fault.
type SignalWindow struct {
	Phases  []string      `json:"phases"`
	Samples int           `json:"samples"`
	Mean    float64       `json:"mean"`
	Min     float64       `json:"min"`
	Max     float64       `json:"max"`
	StdDev  float64       `json:"stdDev"`
	Points  []SignalPoint `json:"points,omitempty"`
}

// SignalPoint is one sample of a signal.
type SignalPoint struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
}
