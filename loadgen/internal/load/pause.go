package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Pause stops the arrivals of all loads of a process for a time. Their schedules stand still meanwhile, so nothing is owed
// afterwards; requests in flight and open watches go on. A nil Pause never begins. It is safe for concurrent use.
type Pause struct {
	mu    sync.Mutex
	state atomic.Pointer[PauseState]
}

// NewPause returns a Pause that has not begun.
func NewPause() *Pause {
	p := &Pause{}
	p.state.Store(&PauseState{changed: make(chan struct{})})
	return p
}

// PauseState is what a Pause is between two changes. Nil: it never begins.
type PauseState struct {
	over    []span    // pauses that have ended
	since   time.Time // of the present one; zero: there is none
	changed chan struct{}
}

type span struct{ from, to time.Time }

// Begin begins a pause at that time. False: there is one.
func (p *Pause) Begin(at time.Time) bool {
	return p.change(func(s *PauseState) bool {
		if s.Paused() {
			return false
		}
		s.since = at
		return true
	})
}

// End ends the pause at that time. False: there is none.
func (p *Pause) End(at time.Time) bool {
	return p.change(func(s *PauseState) bool {
		if !s.Paused() {
			return false
		}
		s.over = append(s.over[:len(s.over):len(s.over)], span{s.since, at})
		s.since = time.Time{}
		return true
	})
}

func (p *Pause) change(f func(*PauseState) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.state.Load()
	next := &PauseState{over: old.over, since: old.since, changed: make(chan struct{})}
	if !f(next) {
		return false
	}
	p.state.Store(next)
	close(old.changed)
	return true
}

// State is the present state. It costs an atomic read.
func (p *Pause) State() *PauseState {
	if p == nil {
		return nil
	}
	return p.state.Load()
}

// Paused reports whether a pause goes on.
func (s *PauseState) Paused() bool { return s != nil && !s.since.IsZero() }

// Changed is closed when the state is no longer the present one. Nil: it stays.
func (s *PauseState) Changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changed
}

// Lost is how long the pauses that have ended kept a schedule that began at start.
func (s *PauseState) Lost(start time.Time) (sum time.Duration) {
	if s == nil {
		return 0
	}
	for _, p := range s.over {
		sum += p.since(start)
	}
	return sum
}

// since is the length of the span after start.
func (p span) since(start time.Time) time.Duration {
	if p.from.Before(start) {
		p.from = start
	}
	return max(p.to.Sub(p.from), 0)
}

// Elapsed is how far a schedule that began at start has come at a time.
func (s *PauseState) Elapsed(start, now time.Time) time.Duration {
	elapsed := now.Sub(start) - s.Lost(start)
	if s.Paused() {
		elapsed -= span{s.since, now}.since(start)
	}
	return elapsed
}

// Await waits until the arrival is due that a schedule begun at start has at that time after it, and returns when it was.
// False: ctx ended before.
func (p *Pause) Await(ctx context.Context, start time.Time, at time.Duration) (due time.Time, ok bool) {
	for ctx.Err() == nil {
		s := p.State()
		due = start.Add(at + s.Lost(start))
		wait := time.Until(due)
		if !s.Paused() && wait <= 0 {
			return due, true
		}
		if !awaitChange(ctx, s, wait) {
			break
		}
	}
	return due, false
}

// awaitChange waits for a time, unless there is a pause, or for the state to change. False: ctx has ended.
func awaitChange(ctx context.Context, s *PauseState, wait time.Duration) bool {
	var over <-chan time.Time
	if !s.Paused() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-s.Changed():
	case <-ctx.Done():
		return false
	}
	return true
}
