package run

import "time"

// Progress shows what the run does. Its methods may be called from several
// goroutines.
type Progress interface {
	// Step is one line about something done or begun.
	Step(line string)
	// Live is the state of the run, once a second.
	Live(Snapshot)
}

// Snapshot is the state of the run shown while it runs.
type Snapshot struct {
	Phase string
	// Elapsed in the phase; Length of it, or its `within`.
	Elapsed, Length time.Duration
	Until           string
	// Offered and Achieved are requests per second over the last second, P99
	// their latency from the intended start over the same time.
	Offered, Achieved     float64
	P99                   time.Duration
	Nodes, NodesReady     int
	PodsWanted, PodsReady int64
	WatchesOpen           int
	// Delivered counts watch events, since the start.
	Delivered int64
}
