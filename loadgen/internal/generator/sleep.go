package generator

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/wakeup"
)

// sleep waits for ticks, on a Go timer where there is no wakeup.
type sleep struct {
	begin  time.Time
	wakeup *wakeup.Wakeup
	timer  *time.Timer
	unring func() bool
}

// newSleep makes a sleep that ends with ctx.
func newSleep(ctx context.Context) *sleep {
	s := &sleep{begin: time.Now(), wakeup: wakeup.New(), timer: time.NewTimer(time.Hour)}
	s.timer.Stop()
	s.unring = context.AfterFunc(ctx, s.wakeup.Ring)
	return s
}

// until returns at t, or false when ctx has ended.
func (s *sleep) until(ctx context.Context, t time.Time) bool {
	if !s.wakeup.Wait(s.begin, t.Sub(s.begin)) {
		s.timer.Reset(time.Until(t))
		select {
		case <-ctx.Done():
		case <-s.timer.C:
		}
	}
	return ctx.Err() == nil
}

func (s *sleep) end() {
	s.unring()
	s.timer.Stop()
	s.wakeup.Close()
}
