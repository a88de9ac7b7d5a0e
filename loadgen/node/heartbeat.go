package node

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Retries of a renewal that was refused, within its own interval. A kubelet
// tries five times at once, then backs off from 200 ms to 7 s.
const (
	renewBackoff    = 200 * time.Millisecond
	renewBackoffMax = 7 * time.Second
)

// heartbeat renews one node's Lease on a fixed grid: first, first+interval,
// first+2·interval, ... Each point of the grid is one intended renewal, and
// each that fails is laid at one door:
//
//   - A renewal has a timer and a goroutine of its own; nothing is queued
//     behind other nodes. So if it begins late, this process was not run or
//     the machine was too slow: begun more than an interval late, it is missed
//     by the generator (and not sent: the next one is due).
//   - It is given up when the next one is due, which bounds what is in flight
//     to one per node however long a server stalls. Begun in time and not
//     acknowledged by then, it is missed by the server; unless more than half
//     of the interval went by on our side, before it began or before anybody
//     here looked at the clock again: then the miss is the generator's.
//
// A kubelet counts its next renewal from the end of the last (wait.JitterUntil,
// sliding, 4%), with a request timeout of 10 s; a grid has the same rate and
// makes "late" well defined. The phase on the grid is drawn per node, as
// kubelets' starts are.
type heartbeat struct {
	life     *life
	interval time.Duration
	// renew makes one attempt; it ends with its context.
	renew func(context.Context) error
	// broken is called when two renewals in a row were missed: a kubelet then
	// closes its connections.
	broken func()

	mu      sync.Mutex
	due     time.Time // of the next renewal
	timer   clock.Timer
	current *renewal
	misses  int // in a row
}

// renewal is one renewal under way.
type renewal struct {
	intended time.Time
	lag      time.Duration // intended to begun
	cancel   context.CancelFunc
}

// start puts the first renewal at a time drawn from the coming interval.
func (h *heartbeat) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due = h.life.clock.Now().Add(time.Duration(h.life.float() * float64(h.interval)))
	h.arm()
}

// arm is called with mu held.
func (h *heartbeat) arm() {
	h.timer = h.life.after(h.due.Sub(h.life.clock.Now()), h.tick)
}

// stop ends the renewals; the one under way is not judged.
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

// tick does the renewal that is due.
func (h *heartbeat) tick() {
	h.mu.Lock()
	now := h.life.clock.Now()
	h.expire(now)
	for now.Sub(h.due) >= h.interval {
		h.life.ledger.missedHere.Add(1)
		h.life.ledger.took(now.Sub(h.due))
		h.due = h.due.Add(h.interval)
	}
	ctx, cancel := context.WithCancel(h.life.ctx)
	r := &renewal{intended: h.due, lag: now.Sub(h.due), cancel: cancel}
	h.current = r
	h.due = h.due.Add(h.interval)
	h.arm()
	broken := h.misses >= 2
	if broken {
		h.misses = 0
	}
	h.mu.Unlock()
	if broken {
		h.broken()
	}
	h.attempt(ctx, r)
}

// expire gives up a renewal whose successor is due. The caller holds mu.
func (h *heartbeat) expire(now time.Time) {
	r := h.current
	if r == nil {
		return
	}
	h.current = nil
	r.cancel()
	h.misses++
	if max(r.lag, now.Sub(h.due)) > h.interval/2 {
		h.life.ledger.missedHere.Add(1)
	} else {
		h.life.ledger.missedThere.Add(1)
	}
	// It took at least this long: leaving it out would flatter the rest.
	h.life.ledger.took(now.Sub(r.intended))
}

// attempt renews until acknowledged or given up.
func (h *heartbeat) attempt(ctx context.Context, r *renewal) {
	defer r.cancel()
	for failures := 1; ; failures++ {
		err := h.renew(ctx)
		if err == nil {
			break
		}
		if !h.life.wait(ctx, h.life.backoff(renewBackoff, renewBackoffMax, failures)) {
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != r {
		return // too late: already counted
	}
	h.current, h.misses = nil, 0
	h.life.ledger.renewed(h.life.clock.Since(r.intended))
}
