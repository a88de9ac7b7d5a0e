package objects

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// A Meter records how close an action came to its rate: how long its requests should have taken and how long they took.
// If the phase ends during a round, only the requests that were due by then count.
func TestMeterOfAnAction(t *testing.T) {
	for name, c := range map[string]struct {
		n             int
		rate          float64
		takes, within time.Duration
		requests      int64
		done          int64
		due, took     float64 // seconds
	}{
		"in time":                 {100, 10, 100 * time.Millisecond, time.Minute, 100, 100, 10, 10},
		"16 at a time for 2 s":    {160, 100, 2 * time.Second, time.Minute, 160, 160, 1.6, 20},
		"cut off":                 {1000, 10, 0, 10 * time.Second, 100, 100, 10, 10},
		"without a rate to judge": {100, 0, time.Second, time.Minute, 0, 100, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context()) // no deadline: a limiter gives up before it
			defer cancel()
			defer time.AfterFunc(c.within, cancel).Stop()
			m := NewMeter()
			_ = each(WithMeter(ctx, m), c.n, c.rate, func(ctx context.Context, _ int) error {
				time.Sleep(c.takes) // virtual
				return ctx.Err()
			})
			var a result.Action
			m.AddTo(&a)
			near := func(got, want float64) bool { return got >= 0.97*want && got <= 1.1*want+0.001 }
			if !near(float64(a.Requests), float64(c.requests)) || !near(float64(a.Done), float64(c.done)) || !near(a.DueSeconds, c.due) || !near(a.Seconds, c.took) {
				t.Errorf("%s: %+v, want %d requests, %d done, %v s due, %v s taken", name, a, c.requests, c.done, c.due, c.took)
			}
			if p50 := time.Duration(a.Service.P50 * float64(time.Second)); p50 < c.takes*99/100 {
				t.Errorf("%s: p50 of the requests is %s, want %s", name, p50, c.takes)
			}
		})
	}
}
