package workers

import (
	"fmt"
	"time"
)

const (
	// exchanges of a comparison of clocks.
	exchanges = 16
	// MaxClockOffset is the most that a worker's clock may be off the coordinator's.
	MaxClockOffset = 5 * time.Millisecond
)

// exchange is one question for the time: when it was asked and answered by our clock, and the answer.
type exchange struct{ asked, answered, theirs time.Time }

// compareClocks takes the fastest exchange: their clock told the time somewhere between question and answer, most
// likely in the middle, and is off by at most half of the time between (Cristian 1989).
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

// check refuses clocks that are too far apart.
func (c clock) check() error {
	if c.Offset.Abs() <= MaxClockOffset {
		return nil
	}
	way := "before"
	if c.Offset < 0 {
		way = "behind"
	}
	return fmt.Errorf("its clock is %v %s the coordinator's, of at most %v (synchronise the clocks of the machines, as with chrony)",
		c.Offset.Abs().Round(10*time.Microsecond), way, MaxClockOffset)
}

// here is a time of the coordinator's clock on the worker's.
func (c clock) here(t time.Time) time.Time { return t.Round(0).Add(c.Offset) }

// there is a time of the worker's clock on the coordinator's.
func (c clock) there(t time.Time) time.Time { return t.Round(0).Add(-c.Offset) }
