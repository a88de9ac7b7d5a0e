package load

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Load is one load of a scenario. A run calls Prepare, Run, Settle and Finish, in this order. Embed Plain for default
// implementations of the optional methods.
type Load interface {
	// Prepare creates the load's objects and opens connections. Its errors contain the verb, the object and a hint.
	Prepare(ctx context.Context) error
	// Run generates the load until ctx ends. It returns when all requests have ended, at most one request timeout
	// later.
	Run(ctx context.Context) error
	// BeginPhase begins a phase at the given time. Requests and events after that time belong to the phase. Call it
	// before the first arrival of the phase.
	BeginPhase(name string, at time.Time)
	// AllOpen returns a channel that is closed when all watches of the load are established. Phases can wait for this.
	// AllOpen returns nil if the load has no such watches.
	AllOpen() <-chan struct{}
	// Settle waits until the watches have delivered all measured writes. When it gives up, it counts the missing
	// deliveries as lost. Call it after Run.
	Settle(ctx context.Context)
	// Finish completes the load. Call it after Run, when all loads and faults have ended. It calls step to report work
	// that takes time.
	Finish(ctx context.Context, step func(format string, args ...any)) error
	// AddTo adds the load's results to m. The results are final after Finish.
	AddTo(m *result.Measurements)
	// Live returns the load's current rates and counts, for a display.
	Live() Live
	// Backlog returns the number of bytes that the kernel has received and this process has not read yet.
	Backlog() int64
}

// Plain provides default methods for a Load that has no watches to wait for and nothing to finish.
type Plain struct{}

// AllOpen returns nil: the load has no watches to wait for.
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

// Live is a load's state for a display. Rates cover the time since the previous call of Load.Live. Fields that do not
// apply to a kind of load are zero.
type Live struct {
	// Offered is the number of requests per second that were due. Achieved is the number of requests per second that
	// the server answered with 2xx.
	Offered, Achieved float64
	// P99 is the 99th percentile of latency. A request's latency begins at its intended start.
	P99 time.Duration
	// Open is the number of open watches.
	Open int
	// Delivered is the number of watch events of measured writes that arrived since the start of the load.
	Delivered int64
}

// Rate computes rates from running totals.
type Rate struct {
	last  time.Time
	total int64
}

// Since returns the rate per second since the previous call, or 0 at the first call.
func (r *Rate) Since(now time.Time, total int64) float64 {
	var perSecond float64
	if s := now.Sub(r.last).Seconds(); !r.last.IsZero() && s > 0 {
		perSecond = float64(total-r.total) / s
	}
	r.last, r.total = now, total
	return perSecond
}
