package request

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Reading responses late saves CPU: waking the process for a response costs several times as much CPU as reading it,
// and an API server sends each response in two packets. A load that sends nothing in reaction to responses can
// therefore read them when the dispatcher wakes up for the next arrival. The kernel reports when each response arrived,
// and the request ends at that time.
const (
	// readWithin is the longest time for which the engine intentionally leaves a response unread.
	readWithin = 5 * time.Millisecond
	// idleRead is the interval at which the engine reads connections without requests in flight, to notice if the
	// server has closed them.
	idleRead = time.Second
	// goneWithin is the time since the last read of a connection after which the engine reads the connection before it
	// sends a request there, because the server may have closed the connection.
	goneWithin = 50 * time.Millisecond
	// A load may read its responses late only up to this rate and up to deferredConnections connections, so that two
	// responses rarely arrive on one connection between two reads. Otherwise both requests end when the second response
	// arrives, because the kernel reports only the time of the last byte.
	deferredRate        = 1000 // arrivals per second
	deferredConnections = 8
)

// defersAnswers reports whether a load may defer reading its responses.
func defersAnswers(l scenario.Load, op Operation, connections int) bool {
	_, unhurried := op.(Unhurried)
	return unhurried && l.Rate <= deferredRate && l.Shape.Kind == "" && connections <= deferredConnections
}

// receive reads the responses that have arrived and were not read yet.
func (e *engine) receive() {
	if !e.deferred {
		return
	}
	now := e.now()
	all := now-e.readAll >= idleRead
	if all {
		e.readAll = now
	}
	e.pool.Receive(all)
}

// nextRead returns the time by which the engine must next read responses.
func (e *engine) nextRead() time.Duration {
	if e.inFlight.Load() > 0 {
		return e.now() + readWithin
	}
	return e.now() + idleRead
}

// came returns the time at which a request ends, and the part of `waited` that is a stall of the generator. `end` is
// the time at which the response was read. `waited` is the time from the response's arrival to `end`.
func (f *flight) came(end, waited time.Duration) (at, stalled time.Duration) {
	if !f.stream.Deferred() {
		return end, waited
	}
	return deferredEnd(end, waited, f.sent)
}

// deferredEnd is like came, for a response that the engine intentionally read late. The first part of `waited`, up to
// readWithin, was intended and is not part of the latency. The rest is a stall, and is part of the latency.
func deferredEnd(end, waited, sent time.Duration) (at, stalled time.Duration) {
	meant := min(waited, readWithin)
	return max(end-meant, sent), waited - meant
}
