package samples

import (
	"sync"
	"sync/atomic"
	"time"
)

// Requests counts those of one load. Its methods are safe for concurrent use;
// of a nil one they do nothing.
type Requests struct {
	succeeded, unsent atomic.Int64
	slowest, external atomic.Int64 // nanoseconds

	mu     sync.Mutex
	failed map[string]int64
}

// Succeeded counts a request that was answered with 2xx, after took since its
// intended start; up to own of it may be the generator's own delay.
func (r *Requests) Succeeded(took, own time.Duration) {
	if r != nil {
		r.succeeded.Add(1)
		r.took(took, own)
	}
}

// Failed counts a request that was not, by its outcome as in result.Requests.
func (r *Requests) Failed(outcome string, took, own time.Duration) {
	if r == nil {
		return
	}
	r.mu.Lock()
	if r.failed == nil {
		r.failed = map[string]int64{}
	}
	r.failed[outcome]++
	r.mu.Unlock()
	r.took(took, own)
}

func (r *Requests) took(took, own time.Duration) {
	raise(&r.slowest, took)
	raise(&r.external, took-own)
}

// Unsent counts an arrival that found no free slot.
func (r *Requests) Unsent() {
	if r != nil {
		r.unsent.Add(1)
	}
}

// raise makes a maximum of d, if it is lower.
func raise(maximum *atomic.Int64, d time.Duration) {
	for {
		so := maximum.Load()
		if int64(d) <= so || maximum.CompareAndSwap(so, int64(d)) {
			return
		}
	}
}

// take hands over what was counted since the last time. A request that ends
// meanwhile may be in this slot with its count and in the next with its time.
func (r *Requests) take() RequestSlot {
	s := RequestSlot{Succeeded: r.succeeded.Swap(0), Unsent: r.unsent.Swap(0), Slowest: time.Duration(r.slowest.Swap(0)).Seconds()}
	external := time.Duration(r.external.Swap(0)).Seconds()
	s.External = &external
	r.mu.Lock()
	s.Failed, r.failed = r.failed, nil
	r.mu.Unlock()
	return s
}

// Streams counts what happens to watches. Its methods are safe for concurrent
// use; of a nil one they do nothing.
type Streams struct{ breaks, relists, delivered atomic.Int64 }

// Broke counts a watch that ended out of turn: not by its server's timeout.
func (s *Streams) Broke() {
	if s != nil {
		s.breaks.Add(1)
	}
}

// Relisted counts a watch that has to list again.
func (s *Streams) Relisted() {
	if s != nil {
		s.relists.Add(1)
	}
}

// Delivered counts n first deliveries of acknowledged writes.
func (s *Streams) Delivered(n int64) {
	if s != nil {
		s.delivered.Add(n)
	}
}

func (s *Streams) take() StreamSlot {
	return StreamSlot{Breaks: s.breaks.Swap(0), Relists: s.relists.Swap(0), Delivered: s.delivered.Swap(0)}
}
