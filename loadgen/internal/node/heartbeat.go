package node

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Retries of a renewal that was refused, within its own interval. A kubelet tries five times immediately, then backs off
// from 200 ms to 7 s.
const (
	renewBackoff    = 200 * time.Millisecond
	renewBackoffMax = 7 * time.Second
)

// lateGap exceeds the 4% of jitter in a kubelet's renewals.
const lateGap = 1.05

// heartbeat renews one node's Lease on a fixed grid: first, first+interval, first+2·interval, ... Each point of the grid is
// one intended renewal. Each missed renewal is attributed either to the generator or to the server:
//
//   - Each renewal has its own timer. It does not queue behind other nodes, and no goroutine waits for its answer. So if it
//     begins late, this process did not run or the machine was too slow. If it is more than an interval late, the generator
//     missed it, and does not send it because the next one is due.
//   - A renewal is given up when the next one is due, so a node has at most one renewal in flight, however long a server
//     stalls. If the renewal began in time and is not acknowledged by then, the server missed it. But if more than half of
//     the interval passed in this process, before the renewal began or before this process looked at the clock again, the
//     generator missed it.
//
// A kubelet counts its next renewal from the end of the last (wait.JitterUntil, sliding, 4%), with a request timeout of 10
// s. A grid has the same rate and makes "late" well defined. The phase on the grid is drawn for each node, as kubelets
// start at different times.
//
// A node that is slow on purpose renews late by its delay. A kubelet counts from the end of the last renewal, so the grid
// is then interval+delay wide. Its renewals are judged from their intended start, which includes the delay: a configured
// delay is not a miss.
//
// A renewal that begins more than lateGap intervals after the previous one is counted as delayed, whatever the cause: a
// slow kubelet shows exactly this.
type heartbeat struct {
	life     *life
	interval time.Duration
	// renew makes one attempt and calls done once, on any goroutine. It gives up when ctx ends.
	renew func(ctx context.Context, done func(error))
	// slot and origin align renewals of several nodes; slot 0: each node has its own times.
	slot   time.Duration
	origin time.Time
	// broken is called when two renewals in a row were missed: a kubelet then reconnects.
	broken func()

	mu      sync.Mutex
	due     time.Time     // of the next renewal
	begun   time.Time     // of the last renewal; zero: none yet
	delay   time.Duration // delay of a slow node
	timer   clock.Timer
	current *renewal
	misses  int // in a row
}

type renewal struct {
	intended time.Time
	lag      time.Duration // intended to begun
	ctx      context.Context
	cancel   context.CancelFunc
}

// renewalSlot returns the slot in which about five of the nodes renew their Leases. A wake-up costs more than a
// renewal: separate renewals would cost twice the CPU. The slot is at most 100 ms, and shorter with more nodes, to
// avoid bursts.
func renewalSlot(nodes int, interval time.Duration) time.Duration {
	return min(5*interval/time.Duration(nodes), 100*time.Millisecond)
}

// start puts the first renewal at a time drawn from the coming interval.
func (h *heartbeat) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.life.clock.Now()
	h.due = h.drawn(now)
	h.arm(now)
}

// drawn returns a time in the coming interval, at a slot's end.
func (h *heartbeat) drawn(now time.Time) time.Time {
	due := now.Add(time.Duration(h.life.float() * float64(h.interval)))
	if h.slot > 0 {
		due = due.Add(h.slot - due.Sub(h.origin)%h.slot)
	}
	return due
}

// arm sets the timer of the next renewal. It is called with mu held.
func (h *heartbeat) arm(now time.Time) { h.timer = h.life.after(h.due.Sub(now), h.tick) }

// stop ends the renewals; a renewal in flight is not judged.
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

// slow delays all renewals from the next on by d; 0 ends the delay.
func (h *heartbeat) slow(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.life.clock.Now()
	h.due = h.due.Add(d - h.delay)
	if h.due.Before(now) { // that time has passed: draw one from the coming interval
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
	if now.Before(h.due) { // slow moved the timer as it fired
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

// expire gives up a renewal when the next one is due. The caller holds mu.
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
	// It took at least this long. Leaving it out would make latencies look too good.
	h.life.ledger.missed(by, now.Sub(r.intended))
}

// attempt renews repeatedly until the renewal is acknowledged or given up.
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
		return // too late: already counted
	}
	h.current, h.misses = nil, 0
	h.life.ledger.renewed(h.life.clock.Since(r.intended))
}
