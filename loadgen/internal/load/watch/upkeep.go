package watch

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

const (
	// lookAfter is how often watches past their deadline are looked for.
	lookAfter = 5 * time.Second
	giveBack  = 100 * time.Millisecond
)

// endOverdue ends streams that the server has forgotten, until ctx ends. A timer for each would cost more.
func (w *Watches) endOverdue(ctx context.Context) {
	for apiclient.Pause(ctx, lookAfter) {
		w.overdue(w.now())
	}
}

// overdue ends the streams whose time has come.
func (w *Watches) overdue(now time.Duration) {
	for i := range w.watchers {
		v := &w.watchers[i]
		deadline := time.Duration(v.deadline.Load())
		if s := v.current.Load(); s != nil && deadline > 0 && deadline < now {
			s.CancelWith(errOverdue) // one that has ended meanwhile takes no notice
		}
	}
}

// slowDown gives slow watches their bytes per second back, until ctx ends.
func (w *Watches) slowDown(ctx context.Context) {
	begin, given := w.now(), int64(0)
	for apiclient.Pause(ctx, giveBack) {
		// By the clock, not by the ticks: those may be late.
		due := int64(float64(w.load.Slow.BytesPerSecond) * (w.now() - begin).Seconds())
		for i := range w.watchers {
			v := &w.watchers[i]
			if !v.slow {
				continue
			}
			if s := v.current.Load(); s != nil {
				s.Release(int(due - given))
			}
		}
		given = due
	}
}
