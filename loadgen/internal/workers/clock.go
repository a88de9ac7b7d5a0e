package workers

import (
	"fmt"
	"time"
)

const (
	// exchanges is the number of exchanges in one comparison of clocks.
	exchanges = 16
	// MaxClockOffset is the maximum allowed offset between the clocks of a worker and of the coordinator.
	MaxClockOffset = 5 * time.Millisecond
)

// exchange is one query of the other side's time. asked and answered are the times of the query and of the response by
// our own clock. theirs is the time in the response.
type exchange struct{ asked, answered, theirs time.Time }

// compareClocks returns the offset that the fastest exchange measured. The other side read its clock between the query
// and the response, most likely in the middle. So the offset is wrong by at most half of the duration of the exchange
// (Cristian 1989).
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

// check returns an error if the clocks differ by more than MaxClockOffset.
func (c clock) check() error {
	if c.Offset.Abs() <= MaxClockOffset {
		return nil
	}
	way := "ahead of"
	if c.Offset < 0 {
		way = "behind"
	}
	return fmt.Errorf("its clock is %v %s the coordinator's, the limit is %v (synchronise the clocks of the machines, for example with chrony)",
		c.Offset.Abs().Round(10*time.Microsecond), way, MaxClockOffset)
}

// here converts a time of the coordinator's clock to the worker's clock.
func (c clock) here(t time.Time) time.Time { return t.Round(0).Add(c.Offset) }

// there converts a time of the worker's clock to the coordinator's clock.
func (c clock) there(t time.Time) time.Time { return t.Round(0).Add(-c.Offset) }
