package request

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// ownDelay is how much of a request's latency may be the generator's own.
type ownDelay struct {
	lag     time.Duration // until it was taken up
	stalled time.Duration // of what followed: the stall that its end was seen in or just after, or the wait of its answer to be read
	burst   bool          // that stall held up so many arrivals that they came as a burst
}

func (d ownDelay) all() time.Duration { return d.lag + d.stalled }

// failed reports whether a failure may be our own delay: a timeout of which more than half was ours, or part of
// the burst after a stall. A refused connection never is.
func (d ownDelay) failed(o load.Outcome, latency time.Duration) bool {
	switch {
	case o == load.TimedOut:
		return 2*d.all() > latency
	case o == load.Refused:
		return false
	}
	return d.burst && 2*d.stalled > latency-d.lag
}

// ownDelay is that of a flight which ends at end, by an answer that waited to be read.
func (e *engine) ownDelay(f *flight, end, waited time.Duration) ownDelay {
	late := e.stalls.Late(e.start.Add(end))
	return ownDelay{
		lag:     f.taken - f.intended,
		stalled: min(max(late, waited), end-f.taken),
		burst:   late >= stall.Long,
	}
}

// ownBacklog reports whether the due arrival without a free slot is part of a burst that we made.
func (e *engine) ownBacklog(now time.Duration) bool {
	return now-e.due >= stall.Long || e.stalls.Late(e.start.Add(now)) >= stall.Long
}
