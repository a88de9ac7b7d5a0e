package objects

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// The meter records how much of its rate an action achieved: the intended and the actual duration of its requests. Of a
// round that is cut off, only the requests due by then count.
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
			ctx, cancel := context.WithCancel(t.Context()) // a limiter gives up before a deadline
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
				t.Errorf("%s: requests took %s (p50), want %s", name, p50, c.takes)
			}
		})
	}
}
