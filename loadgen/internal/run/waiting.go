package run

import (
	"context"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

// waiting says what is waited for if that takes its time, until done is called.
func (r *run) waiting(what string) (done func()) { return cluster.Waiting(r.Progress.Step, what) }

// patient gives a context that ends when the user will not wait.
func (r *run) patient() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	switch {
	case r.Hurry == nil:
	case r.hurried():
		cancel()
	default:
		go func() {
			select {
			case <-r.Hurry:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// windUp gives a context for what is done after the phases or after an
// interrupt: it ends when limit is over, or when the user will not wait.
func (r *run) windUp(limit time.Duration) (context.Context, context.CancelFunc) {
	patient, stop := r.patient()
	ctx, cancel := context.WithTimeout(patient, limit)
	return ctx, func() {
		cancel()
		stop()
	}
}

// hurried reports whether the user will not wait.
func (r *run) hurried() bool {
	select {
	case <-r.Hurry:
		return true
	default:
		return false
	}
}

// announceSignals prints what the first signal does and what a second would, when the
// first has come, and that the second has. Call stop when the run is over.
func (r *run) announceSignals(ctx context.Context) (stop func()) {
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		removes := ""
		if r.Kubeconfig != "" {
			removes = " and removing what was made in your cluster"
		}
		r.step("interrupted: ending in order%s; a second signal skips what that waits for", removes)
		select {
		case <-r.Hurry:
			r.step("second signal: nothing is waited for any more")
		case <-over:
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}
