package load

import (
	"context"
	"time"
)

// Load is a stream of work. Its life: Prepare, Run, then its Results, which
// are a method of each kind since their types differ.
type Load interface {
	// Prepare makes the objects the load works on and opens connections.
	// Errors name verb and object, with a hint.
	Prepare(ctx context.Context) error
	// Run works until ctx ends, and returns when the last request in flight
	// has ended, at the latest after its timeout. Everything the load started
	// has ended then.
	Run(ctx context.Context) error
	// BeginPhase attributes new work to the phase of that name, which began
	// at that time. Call it before what the phase starts is started.
	BeginPhase(name string, at time.Time)
	// Live is what happened since the last call, for a display.
	Live() Live
}

// Live is a load's state at a glance. Rates are per second since the last call
// of Load.Live. Fields that a kind of load does not have are zero.
type Live struct {
	// Offered arrivals, and Achieved (answered with 2xx).
	Offered, Achieved float64
	// P99 of the latency from the intended start; of watches, of the delivery
	// from the write's acknowledgement.
	P99 time.Duration
	// Wanted and Open watches.
	Wanted, Open int
	// Events delivered of measured writes, per second and in total.
	Events    float64
	Delivered int64
}

// Rate turns running totals into rates between calls.
type Rate struct {
	last  time.Time
	total int64
}

// Since is the rate since the last call, zero at the first.
func (r *Rate) Since(now time.Time, total int64) float64 {
	var perSecond float64
	if s := now.Sub(r.last).Seconds(); !r.last.IsZero() && s > 0 {
		perSecond = float64(total-r.total) / s
	}
	r.last, r.total = now, total
	return perSecond
}
