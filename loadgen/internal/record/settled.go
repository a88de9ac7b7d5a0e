package record

import "time"

// begin records that scrapes of targets start. Call begin before the scrapes get their timestamps, and call end when
// their samples are in the archive. The caller holds the targets' mu.
func (r *Recorder) begin(targets ...*target) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Now().UnixMilli()
	for _, t := range targets {
		r.pending[t] = now
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, t := range targets {
			delete(r.pending, t)
		}
	}
}

// Settled returns the time up to which no more samples are added, except the zeros of counters that appear later.
func (r *Recorder) Settled() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := r.o.Now().UnixMilli()
	for _, t := range r.pending {
		settled = min(settled, t)
	}
	return time.UnixMilli(settled - 1).UTC()
}
