package workers

import (
	"fmt"
	"time"
)

const (
	// exchanges is the number of exchanges in a comparison of clocks.
	exchanges = 16
	// MaxClockOffset is the largest allowed offset of a worker's clock from the coordinator's.
	MaxClockOffset = 5 * time.Millisecond
)

// exchange is one query of the other side's time: when it was sent and answered by our clock, and the answer.
type exchange struct{ asked, answered, theirs time.Time }

// compareClocks uses the fastest exchange. The other clock was read between question and answer, most likely in the
// middle, so the offset is wrong by at most half of that time (Cristian 1989).
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

// here converts a time of the coordinator's clock to the worker's.
func (c clock) here(t time.Time) time.Time { return t.Round(0).Add(c.Offset) }

// there converts a time of the worker's clock to the coordinator's.
func (c clock) there(t time.Time) time.Time { return t.Round(0).Add(-c.Offset) }
