package generator

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/wakeup"
)

// sleep waits for the ticks of a SelfMeter, until ctx ends. On systems that do not support Wakeup, it uses Go timers.
type sleep struct {
	ctx    context.Context
	begin  time.Time
	wakeup *wakeup.Wakeup
	unring func() bool
}

func newSleep(ctx context.Context) *sleep {
	w := wakeup.New()
	return &sleep{ctx, time.Now(), w, context.AfterFunc(ctx, w.Ring)}
}

// until waits until t and returns true. It returns false if ctx ends first.
func (s *sleep) until(t time.Time) bool {
	if !s.wakeup.Wait(s.begin, t.Sub(s.begin)) {
		select {
		case <-s.ctx.Done():
		case <-time.After(time.Until(t)):
		}
	}
	return s.ctx.Err() == nil
}

func (s *sleep) end() {
	s.unring()
	s.wakeup.Close()
}
