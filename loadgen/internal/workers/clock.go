package workers

import (
	"fmt"
	"time"
)

const (
	// exchanges is the number of requests for a worker's time in one comparison of clocks.
	exchanges = 16
	// MaxClockOffset is the maximum allowed difference between the clocks of a worker and the coordinator.
	MaxClockOffset = 5 * time.Millisecond
)

// exchange is one request for a worker's time. `asked` and `answered` are the times of the request and of the response
// on the coordinator's clock. `theirs` is the worker's time in the response.
type exchange struct{ asked, answered, theirs time.Time }

// compareClocks returns the offset of the worker's clock, computed from the fastest exchange. It assumes that the
// worker read its clock halfway between request and response. So the error is at most half of the duration of the
// fastest exchange (Cristian 1989).
func compareClocks(all []exchange) clock {
	var best clock
	for i, e := range all {
		took := e.answered.Sub(e.asked)
		if i == 0 || took/2 < best.Uncertainty {
			best = clock{Offset: e.theirs.Round(0).Sub(e.asked.Round(0).Add(took / 2)), Uncertainty: took / 2}
		}
	}
	return best
}

// check returns an error if the clocks of the worker and the coordinator differ by more than MaxClockOffset.
func (c clock) check() error {
	if c.Offset.Abs() <= MaxClockOffset {
		return nil
	}
	way := "ahead of"
	if c.Offset < 0 {
		way = "behind"
	}
	return fmt.Errorf("its clock is %v %s the coordinator's clock, but the maximum difference is %v (synchronise the clocks of the machines, for example with chrony)",
		c.Offset.Abs().Round(10*time.Microsecond), way, MaxClockOffset)
}

// here converts a time of the coordinator's clock to the worker's clock.
func (c clock) here(t time.Time) time.Time { return t.Round(0).Add(c.Offset) }

// there converts a time of the worker's clock to the coordinator's clock.
func (c clock) there(t time.Time) time.Time { return t.Round(0).Add(-c.Offset) }
