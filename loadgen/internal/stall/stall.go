// Package stall measures the times in which the generator itself did not run: it was stopped by a signal, short of CPU,
// or had more work than its processors could do. An operation that appears to end in such a time may have ended earlier.
package stall

import (
	"sync/atomic"
	"time"
)

const (
	// Noticeable is the minimum lateness of a tick that counts as a stall. The timers of the kernel and of Go are less
	// exact than this.
	Noticeable = time.Millisecond
	// Long is the minimum stall after which the delayed arrivals come as a burst that affects the cluster.
	Long = 100 * time.Millisecond
	// LostTick is the minimum stall that Total counts: a whole tick of 10 ms.
	LostTick = 10 * time.Millisecond
)

// Meter measures stalls by the lateness of a ticker and by how long goroutines wait to run. After a stall, the generator
// catches up for as long as the stall took: operations that end during either may have been delayed since the stall
// began. Its methods are safe for concurrent use; a nil Meter has no stalls.
type Meter struct {
	state atomic.Pointer[state]
	total atomic.Int64 // the largest value that Total returned
}

// state holds the stalls that the ticks have found so far. The zero value has no stall.
type state struct {
	due          time.Time     // when the next tick is due
	begin, until time.Time     // of the stall that ends last, including the time to catch up
	total        time.Duration // sum of all stalls of at least LostTick
}

// Ticked processes a tick that was due at due and occurred at now. The next tick is due at next.
func (m *Meter) Ticked(due, now, next time.Time) {
	s := state{due: due}
	if last := m.state.Load(); last != nil {
		s = *last
		s.due = due
	}
	s = s.at(now)
	s.due = next
	m.state.Store(&s)
}

// Queued processes the longest time that a goroutine waited to run in the tick before now. Data that is read next may
// have waited as long.
func (m *Meter) Queued(wait time.Duration, now time.Time) {
	last := m.state.Load()
	if last == nil || wait < Noticeable || !now.Add(wait).After(last.until) {
		return
	}
	s := *last
	s.begin, s.until = now.Add(-wait), now.Add(wait)
	m.state.Store(&s)
}

// Stop ends the ticks: lateness does not count from now on.
func (m *Meter) Stop() {
	if s := m.state.Load(); s != nil {
		stopped := *s
		stopped.due = time.Time{}
		m.state.Store(&stopped)
	}
}

// Late returns for how long the generator may have delayed an operation that appears to end at now: the time since the
// beginning of the current stall, or of the last one while the generator catches up. It is zero if the generator runs on
// time.
func (m *Meter) Late(now time.Time) time.Duration {
	s := m.now(now)
	if !now.Before(s.until) {
		return 0
	}
	return max(now.Sub(s.begin), 0)
}

// Total returns the sum of all stalls of at least LostTick until now. It never decreases, even if now is earlier than in
// a previous call, so the difference between two values is how much of the time between the calls was lost.
func (m *Meter) Total(now time.Time) time.Duration {
	if m == nil {
		return 0
	}
	total := int64(m.now(now).total)
	for {
		largest := m.total.Load()
		if total <= largest {
			return time.Duration(largest)
		}
		if m.total.CompareAndSwap(largest, total) {
			return time.Duration(total)
		}
	}
}

func (m *Meter) now(now time.Time) state {
	if m == nil {
		return state{}
	}
	s := m.state.Load()
	if s == nil {
		return state{}
	}
	return s.at(now)
}

// at returns the state at now. If the next tick is overdue, the state includes the stall since that tick was due.
func (s state) at(now time.Time) state {
	if s.due.IsZero() {
		return s
	}
	late := now.Sub(s.due)
	if late < Noticeable {
		return s
	}
	if until := now.Add(late); until.After(s.until) {
		if !s.due.Before(s.until) { // otherwise the generator was still catching up
			s.begin = s.due
		}
		s.until = until
	}
	if late >= LostTick {
		s.total += late
	}
	return s
}
