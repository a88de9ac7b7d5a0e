package cluster

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// background repeats a function until the method `end` is called. Canceling the context of `repeat` does not stop it,
// so it also runs while an interrupted run cleans up.
type background struct {
	stop func()
	done chan struct{}
}

// repeat calls `work` after the given pause. Each call returns the pause before the next call; 0 means stop.
func repeat(ctx context.Context, pause time.Duration, work func(context.Context) (pause time.Duration)) *background {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	b := &background{stop, make(chan struct{})}
	go func() {
		defer close(b.done)
		for pause > 0 && apiclient.Pause(ctx, pause) {
			pause = work(ctx)
		}
	}()
	return b
}

// end stops the calls, and waits for a call in progress. It may be called again. On a nil background it does nothing.
func (b *background) end() {
	if b != nil {
		b.stop()
		<-b.done
	}
}
