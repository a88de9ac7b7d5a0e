package result

import "time"

// PulseFile holds samples of each load, ten a second.
const PulseFile = "pulse.jsonl"

// Recovery holds the effects of a run's faults on its loads and leaders, and
// how long it took until all was well again. docs/reference/recovery.md defines every
// figure. Nil where a run had no fault, no change of leader and no restart.
type Recovery struct {
	// SlotSeconds is the width of a slot of pulse.jsonl: how exact times are that
	// come from requests.
	SlotSeconds float64 `json:"slotSeconds"`
	// StretchSeconds is how long a load has to hold its bound to be back inside
	// it, and how long a run of failures has to pause to be over.
	StretchSeconds float64         `json:"stretchSeconds"`
	Faults         []FaultRecovery `json:"faults,omitempty"`    // in the order in which they began
	Handovers      []Handover      `json:"handovers,omitempty"` // of leases and of etcd's leader, in the order of their time
	Restarts       []Restart       `json:"restarts,omitempty"`  // of components, in the order of their end
	// Missing says in a line each what could not be told, and why.
	Missing []string `json:"missing,omitempty"`
}

// FaultRecovery is one fault and what came of it. It answers for what happens
// from its begin until the next fault begins.
type FaultRecovery struct {
	ID     string    `json:"id"`               // of the fault in the timeline
	Kind   string    `json:"kind"`             // as in the scenario
	On     []string  `json:"on,omitempty"`     // the components it hit, by name
	Detail string    `json:"detail,omitempty"` // for a person
	Phase  string    `json:"phase"`            // in which it began; empty: outside of all
	Begin  time.Time `json:"begin"`            // when it was in force
	// End is when it was undone. Nil: it was not while the run was recorded.
	// That of a fault without length (a restart) is its begin.
	End   *time.Time     `json:"end,omitempty"`
	Loads []LoadRecovery `json:"loads,omitempty"` // requests of loads and histories that ran when it began, or after
	// Relists of watches and nodes.
	Relists RelistStorm `json:"relistStorm"`
	// LeaseFailover is the longest of the failovers of a lease that this fault
	// caused, and LeaderFailover of etcd's leader. Nil: it caused none.
	LeaseFailover  *float64 `json:"leaseFailoverSeconds,omitempty"`
	LeaderFailover *float64 `json:"leaderFailoverSeconds,omitempty"` // of etcd's leader
	// Leaderless lists what lost its leader's process to this fault and got no new
	// leader that was observed: as Handover.Of.
	Leaderless []string `json:"unled,omitempty"`
}

// LoadRecovery holds the effect of a fault on one request load. Times count from the
// fault's begin or end; those before are negative. A request counts in the slot
// in which it ended.
type LoadRecovery struct {
	Load string `json:"load"` // the load's name in the scenario
	// Bound that every request has to hold, from its intended start to the last
	// byte of a 2xx answer.
	Bound float64 `json:"boundSeconds"`
	// Affected: a request failed or took longer than the bound, in a slot that
	// belongs to the fault. If not, ErrorWindow is zero and the times are nil.
	Affected bool `json:"affected"`
	// Silent: no request ended in a slot that belongs to the fault, so that
	// nothing is known of what it did to this load.
	Silent bool `json:"silent,omitempty"`
	// ErrorWindow is from the first such slot to the end of the last.
	ErrorWindow float64 `json:"errorWindowSeconds"`
	// Open: the load was outside its bound to the last slot that was seen, and
	// its error window may have been longer.
	Open bool `json:"errorWindowOpen,omitempty"`
	// From and Until are where the error window lies, since the fault's begin.
	From  *float64 `json:"fromSeconds,omitempty"`
	Until *float64 `json:"untilSeconds,omitempty"` // the end of the error window, since the fault's begin
	// Succeeded, Failed and Unsent count the requests of the error window;
	// Succeeded are those answered with 2xx, slow ones among them.
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"` // not answered with 2xx
	Unsent    int64 `json:"unsent"` // arrivals that found no free slot
	// SlowSlots are slots of the window in which nothing failed and the slowest
	// request took longer than the bound.
	SlowSlots int64 `json:"slowSlots"`
	// Outcomes of those that failed, as in Requests.
	Outcomes map[string]int64 `json:"outcomes,omitempty"`
	// Slowest request of the error window, in seconds.
	Slowest float64 `json:"slowestSeconds"`
	// FirstSuccess is from the fault's begin to the first success after the
	// first failure, FirstSuccessAfterEnd from the fault's end: negative where
	// the load succeeded while the fault was still there. Nil: nothing failed
	// (slow is not failed), or nothing succeeded any more.
	FirstSuccess         *float64 `json:"firstSuccessSeconds,omitempty"`
	FirstSuccessAfterEnd *float64 `json:"firstSuccessAfterEndSeconds,omitempty"` // since the fault's end
	// Back is from the fault's end to the slot from which the load held its
	// bound for a whole stretch; zero where it did at once. Nil where it
	// did not, or did not run long enough to tell.
	Back *float64 `json:"backSeconds,omitempty"`
	// BackAtLeast is how long after the fault's end the load was certainly not
	// back yet. Nil where Back is known, or no slot after the end.
	BackAtLeast *float64 `json:"backAtLeastSeconds,omitempty"`
	// AlreadyFailing: the load was outside its bound in the stretch before the
	// fault too, so that not all of the window is the fault's.
	AlreadyFailing bool `json:"alreadyFailing,omitempty"`
	// Detail says why a figure is missing, or what to know before believing it.
	Detail string `json:"detail,omitempty"`
}

// RelistStorm is how watches and nodes had to ask again.
type RelistStorm struct {
	// Relists from the fault's begin until WithinSeconds after its end, of all
	// watch loads, histories and nodes; Breaks are streams that ended out of turn.
	Relists       int64   `json:"relists"`
	Breaks        int64   `json:"breaks"`        // streams that ended out of turn
	WithinSeconds float64 `json:"withinSeconds"` // after the fault's end, or the next fault's begin if that was sooner
	// PeakPerSecond is the most relists in any one second of it.
	PeakPerSecond int64 `json:"peakPerSecond"`
	// Last is from the fault's begin to the end of the last slot with a relist.
	Last *float64 `json:"lastSeconds,omitempty"`
	// ByLoad are the relists of each load; those of nodes are "simulated nodes".
	ByLoad map[string]int64 `json:"byLoad,omitempty"`
}

// Handover is a change of who holds a lease, or of etcd's leader.
type Handover struct {
	Of   string    `json:"of"`             // what is led: etcd, kube-scheduler, kube-controller-manager
	From string    `json:"from,omitempty"` // the holder before, by name; empty: not known
	To   string    `json:"to"`             // the new holder, by name
	At   time.Time `json:"at"`             // when the new holder was seen to have it
	// Lost is when the former holder was hit: its process ended, or a fault on it
	// began. Nil: nothing is known to have hit it.
	Lost *time.Time `json:"lost,omitempty"`
	// Failover is from Lost to At.
	Failover *float64 `json:"failoverSeconds,omitempty"`
	// Fault is the ID of the fault that did it, if one did.
	Fault string `json:"fault,omitempty"`
	Phase string `json:"phase,omitempty"` // in which it happened
}

// Restart is a component's process that ended and another that took its place.
type Restart struct {
	Component string `json:"component"` // by name
	// Exited is when the old process ended. Nil: not known, only that there is
	// a new one.
	Exited *time.Time `json:"exited,omitempty"`
	Ready  *time.Time `json:"ready,omitempty"`       // when the new one was ready; nil: it was not
	Down   *float64   `json:"downSeconds,omitempty"` // from Exited to Ready
	Fault  string     `json:"fault,omitempty"`       // the ID of the fault that did it, if one did
}

// Signal is an incident's own metric over steady phases, under the fault and
// after it, judged against its own noise. docs/reference/recovery.md says how.
type Signal struct {
	Name string `json:"name"` // unique in the scenario
	Expr string `json:"expr"` // the PromQL
	// Unit of what Expr gives, as a gate's. Empty: a bare number.
	Unit string `json:"unit,omitempty"`
	// Steady, Under and After are what it was in these phases.
	Steady SignalWindow  `json:"steady"`
	Under  SignalWindow  `json:"under"`           // while the fault was in force
	After  *SignalWindow `json:"after,omitempty"` // nil: the scenario names no phase after
	// Noise is the standard deviation of the steady samples, at least 1% of the
	// largest absolute value of the steady and the under samples.
	Noise float64 `json:"noise"`
	// Floor: that least noise was used.
	Floor bool `json:"noiseFloor,omitempty"`
	// Extreme is the mean of that third of the under samples which lies
	// farthest from the steady mean, above or below.
	Extreme float64 `json:"extreme"`
	// Moved is |Extreme - mean of Steady| / Noise. Nil: there were no data.
	Moved *float64 `json:"movedNoises,omitempty"`
	// Returned: the mean of the last third of the after samples is within 3
	// noises, or a tenth of the movement, of the steady mean. Nil: no data.
	Returned *bool `json:"returned,omitempty"`
	// Last is the mean of that last third.
	Last *float64 `json:"last,omitempty"`
	// Detail says why there is no judgement.
	Detail string `json:"detail,omitempty"`
}

// SignalWindow is a signal's samples in some phases.
type SignalWindow struct {
	Phases  []string `json:"phases"`  // their names
	Samples int      `json:"samples"` // that are numbers
	Mean    float64  `json:"mean"`    // of the samples
	Min     float64  `json:"min"`     // the smallest
	Max     float64  `json:"max"`     // the largest
	// StdDev is the sample standard deviation (n - 1), zero of fewer than two.
	StdDev float64 `json:"stdDev"`
	// Points in the order of time, for the report's picture.
	Points []SignalPoint `json:"points,omitempty"`
}

// SignalPoint is one sample of a signal.
type SignalPoint struct {
	Time  time.Time `json:"time"`  // at which the expression was evaluated
	Value float64   `json:"value"` // a finite number
}
