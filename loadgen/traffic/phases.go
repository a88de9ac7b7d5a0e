package traffic

import (
	"sync"
	"time"
)

// phases keeps what a load saw apart by phase. What belongs to a phase is said
// by a time: that of a request's intended start, or of an event.
type phases[T any] struct {
	fresh func() *T

	mu   sync.RWMutex
	list []phase[T]
}

type phase[T any] struct {
	name  string
	begin time.Time
	stats *T
}

// newPhases begins with a nameless phase that holds what comes before the
// first one.
func newPhases[T any](fresh func() *T) *phases[T] {
	return &phases[T]{fresh: fresh, list: []phase[T]{{stats: fresh()}}}
}

func (p *phases[T]) begin(name string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, phase[T]{name, at, p.fresh()})
}

// at is the phase that t belongs to.
func (p *phases[T]) at(t time.Time) *T {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := len(p.list) - 1; i > 0; i-- {
		if !t.Before(p.list[i].begin) {
			return p.list[i].stats
		}
	}
	return p.list[0].stats
}

// now is the phase that began last.
func (p *phases[T]) now() *T {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.list[len(p.list)-1].stats
}

// each calls f for every phase with its length until end. The nameless one
// has no beginning, and begins at start.
func (p *phases[T]) each(start, end time.Time, f func(name string, length time.Duration, stats *T)) {
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
