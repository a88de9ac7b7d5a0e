package scrape

import "time"

// begin marks the scrapes of the given targets as in progress. Call begin before you choose the timestamp of the
// scrapes, with the mutexes of the targets locked. Call end when the samples are in the archive.
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

// Settled returns the time up to which the archive is complete. Later scrapes only add zeros, for new counters, before
// that time.
func (r *Recorder) Settled() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := r.o.Now().UnixMilli()
	for _, t := range r.pending {
		settled = min(settled, t)
	}
	return time.UnixMilli(settled - 1).UTC()
}
