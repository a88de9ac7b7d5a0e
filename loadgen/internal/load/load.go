package load

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Load is a stream of work: Prepare, Run, Settle, Finish. Embed Plain for the methods that only some kinds need.
type Load interface {
	// Prepare makes the objects and opens connections. Its errors name the verb and the object, with a hint.
	Prepare(ctx context.Context) error
	// Run works until ctx ends and returns when everything it started has ended, at the latest after a request's
	// timeout.
	Run(ctx context.Context) error
	// BeginPhase attributes new work to a phase that began at the given time. Call it first.
	BeginPhase(name string, at time.Time)
	// AllOpen is closed when all watches that a phase may wait for are established. It is nil if there are no
	// such watches.
	AllOpen() <-chan struct{}
	// Settle is called after Run. It waits until all watches that must deliver a write have delivered it, or missing deliveries
	// are given up as lost.
	Settle(ctx context.Context)
	// Finish ends the load after Run, when all loads and faults have ended. It calls step to report work that takes time.
	Finish(ctx context.Context, step func(format string, args ...any)) error
	// AddTo adds the load's results to the measurements. They are final after Finish.
	AddTo(m *result.Measurements)
	// Live returns what happened since the last call, for a display.
	Live() Live
	// Backlog returns the number of received bytes that have not been read.
	Backlog() int64
}

// Plain implements the methods of a Load that has nothing to open, settle, finish or read.
type Plain struct{}

// AllOpen returns nil: there is nothing to wait for.
func (Plain) AllOpen() <-chan struct{} { return nil }

// Settle returns immediately.
func (Plain) Settle(context.Context) {}

// Finish does nothing.
func (Plain) Finish(context.Context, func(string, ...any)) error { return nil }

// Backlog returns 0.
func (Plain) Backlog() int64 { return 0 }

// AddToPhases calls add for each phase of m that has a result in byPhase.
func AddToPhases[T any](m *result.Measurements, byPhase map[string]T, add func(*result.Phase, T)) {
	for i := range m.Phases {
		if seen, ok := byPhase[m.Phases[i].Name]; ok {
			add(&m.Phases[i], seen)
		}
	}
}

// Live is a load's state at a glance. Rates are since the last call. Fields that a kind does not have are zero.
type Live struct {
	// Offered is the rate of arrivals, Achieved the rate of requests answered with 2xx.
	Offered, Achieved float64
	// P99 is the 99th percentile of request latency, from the intended start.
	P99 time.Duration
	// Open is the number of open watches.
	Open int
	// Delivered is the total number of delivered events of measured writes.
	Delivered int64
}

// Rate turns running totals into rates between calls.
type Rate struct {
	last  time.Time
	total int64
}

// Since returns the rate since the last call, zero at the first.
func (r *Rate) Since(now time.Time, total int64) float64 {
	var perSecond float64
	if s := now.Sub(r.last).Seconds(); !r.last.IsZero() && s > 0 {
		perSecond = float64(total-r.total) / s
	}
	r.last, r.total = now, total
	return perSecond
}
