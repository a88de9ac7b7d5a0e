package result

import "time"

// PulseFile holds samples of each load, ten a second.
const PulseFile = "pulse.jsonl"

// Recovery holds the effects of a run's faults and the time to recover from them:
// docs/reference/recovery.md.
type Recovery struct {
	// SlotSeconds: width of a slot of pulse.jsonl, the resolution of times from
	// requests.
	SlotSeconds float64 `json:"slotSeconds"`
	// StretchSeconds: a load is back inside its bound, and a run of failures over,
	// after this time.
	StretchSeconds float64         `json:"stretchSeconds"`
	Faults         []FaultRecovery `json:"faults,omitempty"`    // in order of begin
	Handovers      []Handover      `json:"handovers,omitempty"` // of leases and of etcd's leader, in order of time
	Restarts       []Restart       `json:"restarts,omitempty"`  // in order of the old process' end
	Missing        []string        `json:"missing,omitempty"`   // figures that could not be computed, and why, one line each
}

// FaultRecovery is one fault and its effects until the next fault begins.
type FaultRecovery struct {
	ID     string    `json:"id"`           // in the timeline
	Kind   string    `json:"kind"`         // as in the scenario
	On     []string  `json:"on,omitempty"` // components
	Detail string    `json:"detail,omitempty"`
	Phase  string    `json:"phase"` // in which it began
	Begin  time.Time `json:"begin"` // when it was in force
	// End: null: not undone in the recording; begin, of a fault without length.
	End            *time.Time     `json:"end,omitempty"`
	Loads          []LoadRecovery `json:"loads,omitempty"` // running when it began, or later
	Relists        RelistStorm    `json:"relistStorm"`
	LeaseFailover  *float64       `json:"leaseFailoverSeconds,omitempty"`  // the longest of those it caused; null: none
	LeaderFailover *float64       `json:"leaderFailoverSeconds,omitempty"` // the same of etcd's leader
	// Leaderless: roles whose leader's process ended and whose successor was not
	// observed, as Handover.Of.
	Leaderless []string `json:"unled,omitempty"`
}

// LoadRecovery holds the effect of a fault on one request load. A request counts in
// the slot in which it ended.
type LoadRecovery struct {
	Load string `json:"load"`
	// Bound: of every request, intended start to the last byte of a 2xx answer.
	Bound float64 `json:"boundSeconds"`
	// Affected: a request failed or took longer than the bound in a slot of the fault.
	Affected    bool             `json:"affected"`
	Silent      bool             `json:"silent,omitempty"`          // no request ended in a slot of the fault: its effect is unknown
	ErrorWindow float64          `json:"errorWindowSeconds"`        // from the first such slot to the end of the last
	Open        bool             `json:"errorWindowOpen,omitempty"` // the load was outside its bound to the last slot
	From        *float64         `json:"fromSeconds,omitempty"`     // begin of the error window, since the fault's begin
	Until       *float64         `json:"untilSeconds,omitempty"`    // end of the error window, since the fault's begin
	Succeeded   int64            `json:"succeeded"`                 // in the error window: 2xx, slow ones included
	Failed      int64            `json:"failed"`                    // in the error window
	Unsent      int64            `json:"unsent"`                    // in the error window
	SlowSlots   int64            `json:"slowSlots"`                 // without failure, slowest request over the bound
	Outcomes    map[string]int64 `json:"outcomes,omitempty"`        // of failed requests, as in Requests
	Slowest     float64          `json:"slowestSeconds"`            // in the error window
	// FirstSuccess: fault's begin to the first success after the first failure; null:
	// nothing failed, or nothing succeeded later.
	FirstSuccess *float64 `json:"firstSuccessSeconds,omitempty"`
	// FirstSuccessAfterEnd: the same since the fault's end; negative during the fault.
	FirstSuccessAfterEnd *float64 `json:"firstSuccessAfterEndSeconds,omitempty"`
	// Back: fault's end until the load held its bound for a whole stretch; null: it
	// did not, or the phase was too short.
	Back *float64 `json:"backSeconds,omitempty"`
	// BackAtLeast: the load was certainly not back before; null where Back is known.
	BackAtLeast    *float64 `json:"backAtLeastSeconds,omitempty"`
	AlreadyFailing bool     `json:"alreadyFailing,omitempty"` // outside its bound before the fault too
	Detail         string   `json:"detail,omitempty"`         // why a figure is missing, or what limits it
}

// RelistStorm counts relists from a fault's begin until WithinSeconds after its end.
type RelistStorm struct {
	Relists int64 `json:"relists"` // of all watch loads, histories and nodes
	Breaks  int64 `json:"breaks"`  // streams that ended out of turn
	// WithinSeconds: the time counted after the fault's end; less if the next fault
	// began sooner.
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
	// Lost: when the former holder's process ended or a fault on it began; null: not
	// known.
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
	// Noise: standard deviation of the steady samples, at least 1% of the largest
	// absolute value of steady and under samples.
	Noise float64 `json:"noise"`
	Floor bool    `json:"noiseFloor,omitempty"` // that least noise was used
	// Extreme: mean of the third of the under samples farthest from the steady mean,
	// above or below.
	Extreme float64  `json:"extreme"`
	Moved   *float64 `json:"movedNoises,omitempty"` // |extreme - steady mean| / noise
	// Returned: within 3 noises, or a tenth of the movement, of the steady mean.
	Returned *bool    `json:"returned,omitempty"`
	Last     *float64 `json:"last,omitempty"`   // mean of the last third of the after samples
	Detail   string   `json:"detail,omitempty"` // why there is no judgement
}

// SignalWindow is a signal's samples in some phases.
type SignalWindow struct {
	Phases  []string      `json:"phases"`
	Samples int           `json:"samples"`
	Mean    float64       `json:"mean"`
	Min     float64       `json:"min"`
	Max     float64       `json:"max"`
	StdDev  float64       `json:"stdDev"`           // n - 1; zero of fewer than two
	Points  []SignalPoint `json:"points,omitempty"` // in order of time
}

// SignalPoint is one sample of a signal.
type SignalPoint struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
}
