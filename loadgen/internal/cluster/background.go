package cluster

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// background is work that repeats until end. It continues while an interrupted run finishes its cleanup.
type background struct {
	stop func()
	done chan struct{}
}

// repeat calls work after a pause, again and again. work returns the pause before its next call; 0 ends the work.
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

// end ends the work, and returns when it has ended. It may be called again. On a nil background it does nothing.
func (b *background) end() {
	if b != nil {
		b.stop()
		<-b.done
	}
}
