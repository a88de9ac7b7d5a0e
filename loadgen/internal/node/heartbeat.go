package node

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// renewBackoff and renewBackoffMax are the first and longest wait before a node retries a failed renewal. A real
// kubelet retries five times without a wait, and then backs off from 200 ms to 7 s.
const (
	renewBackoff    = 200 * time.Millisecond
	renewBackoffMax = 7 * time.Second
)

// lateGap is the longest normal time between the starts of two renewals, as a multiple of the renewal interval. A
// renewal that starts later counts as delayed. The value allows for the 4% jitter of a kubelet's renewals.
const lateGap = 1.05

// heartbeat renews one node's Lease at fixed times: first, first+interval, first+2·interval, ... It attributes each
// missed renewal to the load generator (this process) or to the server:
//
//   - The generator missed a renewal that starts more than an interval late. The generator does not send this renewal,
//     because the next one is due. Each renewal has its own timer, does not queue behind other nodes, and no goroutine
//     waits for its response. So a late start means that this process did not run or the machine was too slow.
//   - The server missed a renewal that started in time but is not acknowledged when the next one is due. The heartbeat
//     then gives up the old renewal, so a node has at most one renewal in flight, however long a server stalls.
//     Exception: the generator missed the renewal if the renewal or this check started more than half an interval late.
//
// A real kubelet starts the next renewal one interval after the end of the previous one (wait.JitterUntil, sliding,
// 4%), with a request timeout of 10 s. Renewals at fixed times have the same rate, and it is exactly defined when one
// is late. The first time is random for each node, because kubelets start at different times.
//
// A SlowKubelet fault delays each renewal. A real kubelet counts from the end of the previous renewal, so the interval
// grows to interval+delay. The intended start of a renewal includes the delay, so the delay alone does not count as a
// miss.
//
// A renewal that starts more than lateGap intervals after the previous one counts as delayed, regardless of the cause.
// This count includes the renewals of slow kubelets.
type heartbeat struct {
	life     *life
	interval time.Duration
	// renew sends one renewal request and calls done once with the result, on any goroutine. It gives up when ctx ends.
	renew func(ctx context.Context, done func(error))
	// slot makes several nodes renew at the same time: renewals start at origin plus a multiple of slot. 0 means any
	// time.
	slot   time.Duration
	origin time.Time
	// broken handles two missed renewals in a row: a kubelet then opens a new connection.
	broken func()

	mu      sync.Mutex
	due     time.Time     // intended start of the next renewal
	begun   time.Time     // start of the last renewal; zero before the first
	delay   time.Duration // delay of a slow node
	timer   clock.Timer
	current *renewal
	misses  int // number of missed renewals in a row
}

type renewal struct {
	intended time.Time
	lag      time.Duration // actual start minus intended start
	ctx      context.Context
	cancel   context.CancelFunc
}

// renewalSlot returns the length of a time slot. All nodes whose renewals are due in a slot, about five, renew their
// Leases together at the end of the slot. Separate renewals would take twice the CPU time, because waking the process
// costs more than a renewal. The slot is at most 100 ms. It is shorter with more nodes, to avoid bursts.
func renewalSlot(nodes int, interval time.Duration) time.Duration {
	return min(5*interval/time.Duration(nodes), 100*time.Millisecond)
}

// start schedules the first renewal at a random time within one interval from now.
func (h *heartbeat) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.life.clock.Now()
	h.due = h.drawn(now)
	h.arm(now)
}

// drawn returns a random time within one interval from now. If slot is not 0, it rounds the time up to the end of a
// slot.
func (h *heartbeat) drawn(now time.Time) time.Time {
	due := now.Add(time.Duration(h.life.float() * float64(h.interval)))
	if h.slot > 0 {
		due = due.Add(h.slot - due.Sub(h.origin)%h.slot)
	}
	return due
}

// arm sets the timer of the next renewal. The caller holds mu.
func (h *heartbeat) arm(now time.Time) { h.timer = h.life.after(h.due.Sub(now), h.tick) }

// stop ends the renewals. A renewal in flight is cancelled, and counts neither as done nor as missed.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.current != nil {
		h.current.cancel()
		h.current = nil
	}
}

// slow delays the next renewal and all later renewals by d. A d of 0 ends an earlier delay.
func (h *heartbeat) slow(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.life.clock.Now()
	h.due = h.due.Add(d - h.delay)
	if h.due.Before(now) { // already past: choose a new random time
		h.due = h.drawn(now)
	}
	h.delay = d
	if h.timer != nil {
		h.timer.Stop()
	}
	h.arm(now)
}

func (h *heartbeat) tick() {
	h.mu.Lock()
	now := h.life.clock.Now()
	if now.Before(h.due) { // a call of slow has postponed the renewal while the timer fired
		h.mu.Unlock()
		return
	}
	h.expire(now)
	step := h.interval + h.delay
	for now.Sub(h.due) >= step {
		h.life.ledger.missed(&h.life.ledger.missedHere, now.Sub(h.due))
		h.due = h.due.Add(step)
	}
	if !h.begun.IsZero() && now.Sub(h.begun).Seconds() > lateGap*h.interval.Seconds() {
		h.life.ledger.delayed.Add(1)
	}
	h.begun = now
	r := &renewal{intended: h.due, lag: now.Sub(h.due)}
	r.ctx, r.cancel = context.WithCancel(h.life.ctx)
	h.current = r
	h.due = h.due.Add(step)
	h.arm(now)
	broken := h.misses >= 2
	if broken {
		h.misses = 0
	}
	h.mu.Unlock()
	if broken {
		h.broken()
	}
	h.attempt(r, 1)
}

// expire cancels the renewal in flight and counts it as missed. Call it when the next renewal is due. Without a renewal
// in flight it does nothing. The caller holds mu.
func (h *heartbeat) expire(now time.Time) {
	r := h.current
	if r == nil {
		return
	}
	h.current = nil
	r.cancel()
	h.misses++
	by := &h.life.ledger.missedThere
	if max(r.lag, now.Sub(h.due)) > h.interval/2 {
		by = &h.life.ledger.missedHere
	}
	// The renewal took at least this long. Without this sample, latencies would look too good.
	h.life.ledger.missed(by, now.Sub(r.intended))
}

// attempt sends a renewal, and repeats it after each error, until the renewal is acknowledged or given up. number is
// the number of the attempt, from which the wait after an error is computed.
func (h *heartbeat) attempt(r *renewal, number int) {
	h.renew(r.ctx, func(err error) {
		if err == nil {
			h.acknowledged(r)
			return
		}
		if r.ctx.Err() != nil {
			return
		}
		h.life.after(h.life.backoff(renewBackoff, renewBackoffMax, number), func() {
			if r.ctx.Err() == nil {
				h.attempt(r, number+1)
			}
		})
	})
}

func (h *heartbeat) acknowledged(r *renewal) {
	r.cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != r {
		return // too late: already counted as missed
	}
	h.current, h.misses = nil, 0
	h.life.ledger.renewed(h.life.clock.Since(r.intended))
}
