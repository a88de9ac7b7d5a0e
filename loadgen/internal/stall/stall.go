// Package stall measures when the generator itself was not run: stopped by a signal, short
// of CPU, or with more to do than its processors could. What it saw end in such a time may
// have ended earlier.
package stall

import (
	"sync/atomic"
	"time"
)

const (
	// Noticeable is the least lateness of a tick that counts as a stall. Below it
	// are the kernel's and Go's timers.
	Noticeable = time.Millisecond
	// Long is the least stall after which the arrivals that it held up come as a
	// burst that the cluster feels.
	Long = 100 * time.Millisecond
	// LostTick is the least stall that Total adds up: a whole tick of 10 ms.
	LostTick = 10 * time.Millisecond
)

// Meter measures stalls by the lateness of a ticker and by how long goroutines wait to be
// run. A stall is followed by as much time again in which the generator catches up: what
// ends in either may have been held up since the stall began. Its methods are safe for
// concurrent use; a nil Meter has no stall.
type Meter struct {
	state atomic.Pointer[state]
	total atomic.Int64 // the largest Total that was returned
}

// state holds the stalls found by the ticks so far. The zero stall has no length.
type state struct {
	due          time.Time     // the next tick
	begin, until time.Time     // of the stall that reaches furthest, catching up included
	total        time.Duration // of all stalls of LostTick and more
}

// Ticked takes in a tick that was due at due and came at now. The next one is due
// at next.
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

// Queued takes in the longest time that a goroutine waited to be run in the tick
// before now: what is read next may have waited as long.
func (m *Meter) Queued(wait time.Duration, now time.Time) {
	last := m.state.Load()
	if last == nil || wait < Noticeable || !now.Add(wait).After(last.until) {
		return
	}
	s := *last
	s.begin, s.until = now.Add(-wait), now.Add(wait)
	m.state.Store(&s)
}

// Stop ends the ticks: no lateness counts from now on.
func (m *Meter) Stop() {
	if s := m.state.Load(); s != nil {
		stopped := *s
		stopped.due = time.Time{}
		m.state.Store(&stopped)
	}
}

// Late is for how long, up to now, the generator may have held up what it sees
// end now: since the begin of the stall that it is in or has just left. Zero: it
// was run on time.
func (m *Meter) Late(now time.Time) time.Duration {
	s := m.now(now)
	if !now.Before(s.until) {
		return 0
	}
	return max(now.Sub(s.begin), 0)
}

// Total is the length of all stalls of a whole tick and more until now. It never
// decreases, even if a tick has an earlier time than a previous call of Total:
// the difference of two Totals is how much of the time between them was lost.
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

// at is the state at now, where a tick that is overdue makes a stall that no
// tick has told of yet.
func (s state) at(now time.Time) state {
	if s.due.IsZero() {
		return s
	}
	late := now.Sub(s.due)
	if late < Noticeable {
		return s
	}
	if until := now.Add(late); until.After(s.until) {
		if !s.due.Before(s.until) { // else the generator was still catching up
			s.begin = s.due
		}
		s.until = until
	}
	if late >= LostTick {
		s.total += late
	}
	return s
}
