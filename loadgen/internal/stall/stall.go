// Package stall measures stalls: times in which the generator did not run, because of a signal, lack of CPU time, or
// too much work. An operation that appears to end during a stall may have ended earlier.
package stall

import (
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/internal/atomicmax"
)

const (
	// Noticeable is the minimum delay of a tick that counts as a stall. Shorter delays are usual for timers of the kernel
	// and Go.
	Noticeable = time.Millisecond
	// Long is the minimum length of a stall after which the delayed requests form a burst that affects the cluster.
	Long = 100 * time.Millisecond
	// LostTick is the interval of the ticks. Total includes only stalls of at least this length.
	LostTick = 10 * time.Millisecond
)

// Meter detects stalls from delayed ticks of a ticker, and from the time for which goroutines wait to run. After a
// stall, the generator needs about the same time again to catch up. An operation that appears to end during a stall or
// while the generator catches up may have been delayed since the start of the stall. Meter is safe for concurrent use.
// A nil *Meter reports no stalls.
type Meter struct {
	state atomic.Pointer[state]
	total atomic.Int64 // the largest value that Total returned
}

// state describes the stalls so far. The zero value means no stall.
type state struct {
	due          time.Time     // when the next tick is due; zero after Stop
	begin, until time.Time     // latest stall, including the time to catch up
	total        time.Duration // sum of all stalls of at least LostTick
}

// Ticked records that a tick that was due at the time due occurred at the time now. The next tick is due at the time
// next.
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

// Queued records wait, the longest time for which a goroutine waited to run since the previous tick. now is the current
// time. The generator may read the next data with the same delay.
func (m *Meter) Queued(wait time.Duration, now time.Time) {
	last := m.state.Load()
	if last == nil || wait < Noticeable || !now.Add(wait).After(last.until) {
		return
	}
	s := *last
	s.begin, s.until = now.Add(-wait), now.Add(wait)
	m.state.Store(&s)
}

// Stop ends the measurement. After it, missing ticks do not count as stalls.
func (m *Meter) Stop() {
	if s := m.state.Load(); s != nil {
		stopped := *s
		stopped.due = time.Time{}
		m.state.Store(&stopped)
	}
}

// Late returns the maximum delay that the generator may have added to an operation that appears to end at the time now.
// It is the time since the start of the current stall or, while the generator catches up, since the start of the last
// stall. It is zero if the generator runs on time.
func (m *Meter) Late(now time.Time) time.Duration {
	s := m.now(now)
	if !now.Before(s.until) {
		return 0
	}
	return max(now.Sub(s.begin), 0)
}

// Total returns the total length of all stalls of at least LostTick until now. It never decreases, even if now is
// earlier than in a previous call. The difference between two results is the time lost between the two calls.
func (m *Meter) Total(now time.Time) time.Duration {
	if m == nil {
		return 0
	}
	atomicmax.Raise(&m.total, int64(m.now(now).total))
	return time.Duration(m.total.Load())
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

// at returns the state at the time now. If the next tick is overdue, the state includes the stall since the tick was
// due.
func (s state) at(now time.Time) state {
	if s.due.IsZero() {
		return s
	}
	late := now.Sub(s.due)
	if late < Noticeable {
		return s
	}
	if until := now.Add(late); until.After(s.until) {
		if !s.due.Before(s.until) { // if false, the generator was still catching up
			s.begin = s.due
		}
		s.until = until
	}
	if late >= LostTick {
		s.total += late
	}
	return s
}
