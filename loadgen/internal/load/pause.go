package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Pause pauses the arrivals of all loads of a process. A pause delays all later arrivals by the length of the pause, so
// no arrivals are skipped. Requests in flight and open watches continue. A nil *Pause never pauses. A Pause is safe for
// concurrent use.
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

// PauseState is an immutable snapshot of a Pause. A nil *PauseState is never paused.
type PauseState struct {
	over    []span    // pauses that have ended
	since   time.Time // start of the current pause; zero if not paused
	changed chan struct{}
}

type span struct{ from, to time.Time }

// Begin begins a pause at the given time. It returns false if a pause is already in progress.
func (p *Pause) Begin(at time.Time) bool {
	return p.change(func(s *PauseState) bool {
		if s.Paused() {
			return false
		}
		s.since = at
		return true
	})
}

// End ends the pause at the given time. It returns false if no pause is in progress.
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

// State returns the current state. It costs one atomic read.
func (p *Pause) State() *PauseState {
	if p == nil {
		return nil
	}
	return p.state.Load()
}

// Paused reports whether a pause is in progress.
func (s *PauseState) Paused() bool { return s != nil && !s.since.IsZero() }

// Changed returns a channel that is closed when a pause begins or ends. A nil state never changes; its channel is nil.
func (s *PauseState) Changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changed
}

// Lost returns the total length, since start, of the pauses that have ended. A schedule that began at start is delayed
// by this time.
func (s *PauseState) Lost(start time.Time) (sum time.Duration) {
	if s == nil {
		return 0
	}
	for _, p := range s.over {
		sum += p.since(start)
	}
	return sum
}

// since returns the length of the part of p that is after start.
func (p span) since(start time.Time) time.Duration {
	if p.from.Before(start) {
		p.from = start
	}
	return max(p.to.Sub(p.from), 0)
}

// Elapsed returns the time from start to now, not counting pauses.
func (s *PauseState) Elapsed(start, now time.Time) time.Duration {
	elapsed := now.Sub(start) - s.Lost(start)
	if s.Paused() {
		elapsed -= span{s.since, now}.since(start)
	}
	return elapsed
}

// Await waits until an arrival is due: at the time start+at, or later by the length of the pauses. It returns the time
// at which the arrival was due. ok is false if ctx ended first.
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

// awaitChange waits until the state changes or ctx ends, or for the duration wait if s is not paused. It returns false
// if ctx has ended.
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
