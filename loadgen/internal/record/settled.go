package record

import "time"

// begin records that scrapes of targets begin. It is called before they get their timestamps. end records that their
// samples are in the archive. The caller holds the targets' mu.
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

// Settled returns a time up to which no samples are added any more, except the zeros of counters that appear later.
func (r *Recorder) Settled() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := r.o.Now().UnixMilli()
	for _, t := range r.pending {
		settled = min(settled, t)
	}
	return time.UnixMilli(settled - 1).UTC()
}
