package cluster

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// background repeats work until its method end is called. It also works while an interrupted run cleans up.
type background struct {
	stop func()
	done chan struct{}
}

// repeat calls work for the first time after pause. Each call returns the pause before the next call, or 0 to stop.
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

// end stops the work, and returns when it has stopped. It may be called again. On a nil background it does nothing.
func (b *background) end() {
	if b != nil {
		b.stop()
		<-b.done
	}
}
