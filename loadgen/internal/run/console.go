package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

// console shows steps to the user and knows whether they still wait for the end.
type console struct {
	Progress
	hurry <-chan struct{} // closed when the user no longer waits; nil: they always do
}

func (c console) step(format string, args ...any) { c.Step(fmt.Sprintf(format, args...)) }

func (c console) waiting(what string) (done func()) { return cluster.Waiting(c.Step, what) }

func (c console) hurried() bool {
	select {
	case <-c.hurry:
		return true
	default:
		return false
	}
}

// patient returns a context that ends when the user no longer waits.
func (c console) patient() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	if c.hurried() {
		cancel()
		return ctx, cancel
	}
	go func() {
		select {
		case <-c.hurry:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// windUp returns a context for work after the phases or after an interrupt. It ends
// after limit, or when the user no longer waits.
func (c console) windUp(limit time.Duration) (context.Context, context.CancelFunc) {
	patient, stop := c.patient()
	ctx, cancel := context.WithTimeout(patient, limit)
	return ctx, func() {
		cancel()
		stop()
	}
}

// announceSignals prints the effect of the first signal, which ends ctx, and of the
// second. Call stop when the run is over.
func (c console) announceSignals(ctx context.Context, inUserCluster bool) (stop func()) {
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		removes := ""
		if inUserCluster {
			removes = " and removing what was made in your cluster"
		}
		c.step("interrupted: ending in order%s; a second signal skips what that waits for", removes)
		select {
		case <-c.hurry:
			c.step("second signal: nothing is waited for any more")
		case <-over:
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}
