package load

import (
	"sync"
	"time"
)

// Phases contains a load's statistics by phase. A request belongs to the phase of its intended start, and an event to
// the phase in which it arrives.
type Phases[T any] struct {
	fresh func() *T

	mu   sync.RWMutex
	list []phase[T]
}

type phase[T any] struct {
	name  string
	begin time.Time
	stats *T
}

// NewPhases returns Phases with one unnamed phase, which lasts until the first call of Begin. fresh returns empty
// statistics for a new phase.
func NewPhases[T any](fresh func() *T) *Phases[T] {
	return &Phases[T]{fresh: fresh, list: []phase[T]{{stats: fresh()}}}
}

// Begin begins a phase at the given time. If that time has passed, the phase begins now, because earlier arrivals
// already belong to the previous phase. Call Begin before the first arrival of the phase.
func (p *Phases[T]) Begin(name string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); at.Before(now) {
		at = now
	}
	p.list = append(p.list, phase[T]{name, at, p.fresh()})
}

// At returns the statistics of the phase that contains the time t.
func (p *Phases[T]) At(t time.Time) *T {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := len(p.list) - 1; i > 0; i-- {
		if !t.Before(p.list[i].begin) {
			return p.list[i].stats
		}
	}
	return p.list[0].stats
}

// Now returns the statistics of the phase that began most recently.
func (p *Phases[T]) Now() *T {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.list[len(p.list)-1].stats
}

// Each calls f for every phase. length is the length of the phase between start and end. The unnamed phase begins at
// start.
func (p *Phases[T]) Each(start, end time.Time, f func(name string, length time.Duration, stats *T)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i, ph := range p.list {
		from, to := ph.begin, end
		if from.Before(start) {
			from = start
		}
		if i+1 < len(p.list) && p.list[i+1].begin.Before(end) {
			to = p.list[i+1].begin
		}
		f(ph.name, max(to.Sub(from), 0), ph.stats)
	}
}
