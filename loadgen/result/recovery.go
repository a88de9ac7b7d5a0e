package result

import "time"

// PulseFile holds samples of each load, ten a second.
const PulseFile = "pulse.jsonl"

// Recovery holds the effects of a run's faults and the time to recover from them:
// docs/reference/recovery.md.
type Recovery struct {
	// SlotSeconds: resolution of times from requests
	SlotSeconds float64 `json:"slotSeconds"`
	// StretchSeconds: after which a load is back, a run of failures over
	StretchSeconds float64         `json:"stretchSeconds"`
	Faults         []FaultRecovery `json:"faults,omitempty"`
	Handovers      []Handover      `json:"handovers,omitempty"` // of leases and of etcd's leader, in order of time
	Restarts       []Restart       `json:"restarts,omitempty"`  // in order of the old process' end
	Missing        []string        `json:"missing,omitempty"`   // figures not computed, and why
}

// FaultRecovery is one fault and its effects until the next fault begins.
type FaultRecovery struct {
	ID     string    `json:"id"`   // in the timeline
	Kind   string    `json:"kind"` // as in the scenario
	On     []string  `json:"on,omitempty"`
	Detail string    `json:"detail,omitempty"`
	Phase  string    `json:"phase"` // in which it began
	Begin  time.Time `json:"begin"` // when it was in force
	// End: null: not undone in the recording
	End            *time.Time     `json:"end,omitempty"`
	Loads          []LoadRecovery `json:"loads,omitempty"` // running when it began, or later
	Relists        RelistStorm    `json:"relistStorm"`
	LeaseFailover  *float64       `json:"leaseFailoverSeconds,omitempty"` // the longest
	LeaderFailover *float64       `json:"leaderFailoverSeconds,omitempty"`
	// Leaderless: roles whose leader ended and whose successor was not observed
	Leaderless []string `json:"unled,omitempty"`
}

// LoadRecovery holds the effect of a fault on one request load, in the figures of
// docs/reference/recovery.md.
type LoadRecovery struct {
	Load string `json:"load"`
	// Bound: of every request
	Bound float64 `json:"boundSeconds"`
	// Affected: a request failed or broke the bound in a slot of the fault
	Affected    bool             `json:"affected"`
	Silent      bool             `json:"silent,omitempty"` // no request ended in its slots: effect unknown
	ErrorWindow float64          `json:"errorWindowSeconds"`
	Open        bool             `json:"errorWindowOpen,omitempty"` // outside its bound to the last slot
	From        *float64         `json:"fromSeconds,omitempty"`     // of the error window, since the fault's begin
	Until       *float64         `json:"untilSeconds,omitempty"`    // of the error window, since the fault's begin
	Succeeded   int64            `json:"succeeded"`                 // 2xx in the error window, slow ones included
	Failed      int64            `json:"failed"`                    // in the error window
	Unsent      int64            `json:"unsent"`                    // in the error window
	SlowSlots   int64            `json:"slowSlots"`                 // without failure, over the bound
	Outcomes    map[string]int64 `json:"outcomes,omitempty"`        // of failed requests, as in Requests
	Slowest     float64          `json:"slowestSeconds"`
	// FirstSuccess: null: nothing failed, or nothing succeeded later
	FirstSuccess *float64 `json:"firstSuccessSeconds,omitempty"`
	// FirstSuccessAfterEnd: negative during the fault
	FirstSuccessAfterEnd *float64 `json:"firstSuccessAfterEndSeconds,omitempty"`
	// Back: null: it was not, or the phase was too short
	Back *float64 `json:"backSeconds,omitempty"`
	// BackAtLeast: null where Back is known
	BackAtLeast    *float64 `json:"backAtLeastSeconds,omitempty"`
	AlreadyFailing bool     `json:"alreadyFailing,omitempty"` // outside its bound before the fault too
	Detail         string   `json:"detail,omitempty"`         // why a figure is missing, or what limits it
}

// RelistStorm counts relists from a fault's begin until WithinSeconds after its end.
type RelistStorm struct {
	Relists int64 `json:"relists"` // of all watch loads, histories and nodes
	Breaks  int64 `json:"breaks"`  // streams that ended out of turn
	// WithinSeconds: less if the next fault began sooner
	WithinSeconds float64          `json:"withinSeconds"`
	PeakPerSecond int64            `json:"peakPerSecond"`
	Last          *float64         `json:"lastSeconds,omitempty"` // fault's begin to the last relist
	ByLoad        map[string]int64 `json:"byLoad,omitempty"`      // those of nodes are "simulated nodes"
}

// Handover is a change of a lease's holder or of etcd's leader.
type Handover struct {
	Of   string    `json:"of"`             // etcd, kube-scheduler or kube-controller-manager
	From string    `json:"from,omitempty"` // empty: not known
	To   string    `json:"to"`
	At   time.Time `json:"at"` // when the new holder was observed
	// Lost: null: not known
	Lost     *time.Time `json:"lost,omitempty"`
	Failover *float64   `json:"failoverSeconds,omitempty"` // Lost to At
	Fault    string     `json:"fault,omitempty"`           // ID of its cause
	Phase    string     `json:"phase,omitempty"`
}

// Restart is the end of a component's process and the start of its successor.
type Restart struct {
	Component string     `json:"component"`
	Exited    *time.Time `json:"exited,omitempty"`      // null: not known
	Ready     *time.Time `json:"ready,omitempty"`       // null: it was not
	Down      *float64   `json:"downSeconds,omitempty"` // Exited to Ready
	Fault     string     `json:"fault,omitempty"`       // ID of its cause
}

// Signal is an incident's own metric, judged against its own noise, in the signal's
// unit: docs/reference/recovery.md.
type Signal struct {
	Name   string        `json:"name"`           // unique in the scenario
	Expr   string        `json:"expr"`           // PromQL
	Unit   string        `json:"unit,omitempty"` // as a gate's
	Steady SignalWindow  `json:"steady"`
	Under  SignalWindow  `json:"under"` // while the fault was in force
	After  *SignalWindow `json:"after,omitempty"`
	// Noise: of the steady samples
	Noise float64 `json:"noise"`
	Floor bool    `json:"noiseFloor,omitempty"` // the least noise was used
	// Extreme: of the under samples
	Extreme float64  `json:"extreme"`
	Moved   *float64 `json:"movedNoises,omitempty"`
	// Returned: came back to the steady mean
	Returned *bool    `json:"returned,omitempty"`
	Last     *float64 `json:"last,omitempty"`   // of the after samples
	Detail   string   `json:"detail,omitempty"` // why there is no judgement
}

// SignalWindow is a signal's samples in some phases.
type SignalWindow struct {
	Phases  []string      `json:"phases"`
	Samples int           `json:"samples"`
	Mean    float64       `json:"mean"`
	Min     float64       `json:"min"`
	Max     float64       `json:"max"`
	StdDev  float64       `json:"stdDev"` // n - 1; zero of fewer than two
	Points  []SignalPoint `json:"points,omitempty"`
}

// SignalPoint is one sample of a signal.
type SignalPoint struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
}
