package follow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

// awaited is a condition for which Wait can wait. places locates each of its Counts.
type awaited struct {
	*condition.Condition
	places []place
}

// place identifies a Count by its set and its index in set.counts.
type place struct {
	set *set
	i   int
}

// wait is the state of one call of Wait.
type wait struct {
	of awaited
	// stale is true while the condition has been true since the call of Wait. The watches may then be outdated, so a
	// true condition proves nothing.
	stale bool
	held  chan struct{} // closed when the condition is true or Run has ended
	over  bool          // whether held is closed
}

// Wait waits until the named condition is true. It returns an error if ctx or Run ends. The Follower evaluates the
// condition after each event, so Wait also detects a condition that is true only for a moment. If the condition is true
// when Wait is called, the watches may be outdated. Wait then lists the objects to check the condition.
func (f *Follower) Wait(ctx context.Context, name string) error {
	a, ok := f.awaited[name]
	if !ok {
		return fmt.Errorf("follow: no condition %q", name)
	}
	w := &wait{of: a, held: make(chan struct{})}
	f.change(func() {
		f.waits[w] = true
		w.stale = f.holds(a)
	})
	defer f.change(func() { delete(f.waits, w) })
	for {
		if f.isStale(w) && f.recheck(ctx, a) {
			return nil
		}
		select {
		case <-w.held:
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.ended
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.options.Recheck):
		}
	}
}

func (f *Follower) isStale(w *wait) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return w.stale && f.ended == nil
}

// Ready waits until all objects have been listed once, except objects of resources that the API server does not serve
// yet. Later changes then arrive as events. It returns an error if ctx or Run ends.
func (f *Follower) Ready(ctx context.Context) error {
	if f == nil {
		return nil
	}
	select {
	case <-f.ready:
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.ended
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wake ends the calls of Wait whose conditions are true, and the calls of Ready if all objects have been listed. The
// caller holds f.mu.
func (f *Follower) wake() {
	listed := true
	for _, s := range f.sets {
		listed = listed && (s.synced() || s.absent)
	}
	if (listed || f.ended != nil) && !f.isReady {
		f.isReady = true
		close(f.ready)
	}
	for w := range f.waits {
		holds := f.holds(w.of)
		w.stale = w.stale && holds
		if (holds && !w.stale || f.ended != nil) && !w.over {
			w.over = true
			close(w.held)
		}
	}
}

// holds reports whether a condition is true in the watched state. The caller holds f.mu.
func (f *Follower) holds(a awaited) bool {
	if f.missing(a) != "" {
		return false
	}
	ok, err := a.Holds(tallies(a))
	return ok && err == nil
}

func tallies(a awaited) []condition.Tally {
	all := make([]condition.Tally, len(a.places))
	for i, p := range a.places {
		all[i] = p.set.counter.Tally(p.i)
	}
	return all
}

// missing returns a resource of a condition whose objects have not been listed yet, or "". The caller holds f.mu.
func (f *Follower) missing(a awaited) string {
	for _, p := range a.places {
		if !p.set.synced() {
			return p.set.of.Resource
		}
	}
	return ""
}

// Describe describes the progress of the named condition, or returns "" for an unknown name.
func (f *Follower) Describe(name string) string {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.awaited[name]
	if !ok {
		return ""
	}
	if missing := f.missing(a); missing != "" {
		return missing + " could not be listed"
	}
	text := a.Describe(tallies(a))
	if _, err := a.Holds(tallies(a)); err != nil {
		text = strings.TrimPrefix(text+"; "+err.Error(), "; ")
	}
	return text
}

// recheck lists the objects of a condition and reports whether the condition is true for them. It returns false if a
// list fails.
func (f *Follower) recheck(ctx context.Context, a awaited) bool {
	counters := map[*set]*condition.Counter{}
	all := make([]condition.Tally, len(a.places))
	for i, p := range a.places {
		c := counters[p.set]
		if c == nil {
			c = condition.NewCounter(p.set.counts)
			counters[p.set] = c
			f.mu.Lock()
			sources := p.set.sources
			f.mu.Unlock()
			for _, s := range sources {
				_, err := s.pages(ctx, func(items []condition.Object, _ time.Time) {
					for _, o := range items {
						f.mu.Lock() // tests are not safe for concurrent use
						c.Put(uidOf(o), o)
						f.mu.Unlock()
					}
				})
				if err != nil {
					return false
				}
			}
			if len(sources) == 0 {
				return false
			}
		}
		all[i] = c.Tally(p.i)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ok, err := a.Holds(all)
	return ok && err == nil
}
