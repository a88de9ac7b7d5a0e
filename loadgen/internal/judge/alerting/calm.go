package alerting

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/prometheus/storage"
)

// calm evaluates the alerts that still fire until none does, or until end. Pending alerts
// stay pending: what came after is unknown.
func (r *replay) calm(ctx context.Context, archive storage.Queryable, end time.Time) error {
	r.record(func(f *Firing) bool { return f.Fired.IsZero() })
	for at := r.h.End; ; at = at.Add(time.Minute) {
		firing := r.firing()
		if len(firing) == 0 || !at.Before(end) {
			break
		}
		if err := r.load(r.set.Only(firing...), archive, at); err != nil {
			return err
		}
		if err := r.until(ctx, at.Add(time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) firing() []string {
	var all []string
	for _, g := range r.groups {
		for _, f := range g.active {
			if !f.Fired.IsZero() && !slices.Contains(all, f.Alert) {
				all = append(all, f.Alert)
			}
		}
	}
	slices.Sort(all)
	return all
}

// calmStep is the time between the scrapes that repeat the last.
func (r *replay) calmStep() time.Duration {
	step := defaultEvery
	for _, g := range r.groups {
		step = min(step, g.Interval())
	}
	return step
}

// record moves active firings that meet a condition into the history.
func (r *replay) record(what func(*Firing) bool) {
	for _, g := range r.groups {
		for key, f := range g.active {
			if what(f) {
				r.h.Firings = append(r.h.Firings, *f)
				delete(g.active, key)
			}
		}
	}
}
