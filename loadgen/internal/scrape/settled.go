package scrape

import "time"

// begin marks scrapes of targets as in progress. Call it before the scrapes get their timestamps. Call end after their
// samples are in the archive. The caller holds mu of the targets.
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

// Settled returns the time up to which the archive is complete. Later scrapes only add zeros before that time, for
// counters that appear for the first time.
func (r *Recorder) Settled() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := r.o.Now().UnixMilli()
	for _, t := range r.pending {
		settled = min(settled, t)
	}
	return time.UnixMilli(settled - 1).UTC()
}
