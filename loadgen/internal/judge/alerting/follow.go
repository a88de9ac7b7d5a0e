package alerting

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Follower evaluates rules over a recording that is still being written.
type Follower struct {
	set Ruleset
	a   *archive.Archive
	r   *replay // state of the evaluation; nil until the first call of Firing
}

// Follow returns a follower that evaluates the rules over an archive.
func (s Ruleset) Follow(a *archive.Archive) *Follower { return &Follower{set: s, a: a} }

// Firing evaluates the rules up to the time `at`, and returns the alerts that fire at that time. The first call
// evaluates each group once. Later calls evaluate a group at its interval. An alert that cannot be evaluated does not
// fire; `failed` holds its error. Firing returns an error if ctx ends or the rules are invalid.
func (f *Follower) Firing(ctx context.Context, at time.Time) (all []Firing, failed map[string]error, err error) {
	if f.r == nil {
		samples, engine := f.a.Storage()
		f.r = newReplay(f.set, engine, Options{})
		if err := f.r.load(f.set, samples, at); err != nil {
			return nil, nil, err
		}
	}
	if err := f.r.until(ctx, at); err != nil {
		return nil, nil, err
	}
	for _, g := range f.r.groups {
		for _, active := range g.active {
			if !active.Fired.IsZero() {
				all = append(all, *active)
			}
		}
	}
	return all, f.r.h.Failed, nil
}
