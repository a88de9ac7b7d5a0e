package request

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// To wake the process for an answer costs several times what it costs to read it, and an API server sends one in two pieces. Loads of which
// nothing follows from an answer have their answers read when the dispatcher is awake for the next arrival. The kernel tells when they came,
// which is when they end.
const (
	// readWithin is how long an answer may wait to be read.
	readWithin = 5 * time.Millisecond
	// idleRead is the time between reads of connections on which no answer is due: a server may close one.
	idleRead = time.Second
	// goneWithin is the time after which a connection is read before a request is sent on it: the server may have closed it.
	goneWithin = 50 * time.Millisecond
	// Up to deferredRate and deferredConnections two answers rarely come on one connection between two reads. If they do, the first ends with
	// the second, as the kernel tells the time of the last byte.
	deferredRate        = 1000 // per second
	deferredConnections = 8
)

// defersAnswers reports whether the answers of a load may wait.
func defersAnswers(l scenario.Load, op Operation, connections int) bool {
	_, unhurried := op.(Unhurried)
	return unhurried && l.Rate <= deferredRate && l.Shape.Kind == "" && connections <= deferredConnections
}

// receive reads answers that have waited.
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

// nextRead is when answers must be read at the latest.
func (e *engine) nextRead() time.Duration {
	if e.inFlight.Load() > 0 {
		return e.now() + readWithin
	}
	return e.now() + idleRead
}

// came returns when an answer came that is read at end, and how much of the wait before that is a stall.
func (f *flight) came(end, waited time.Duration) (at, stalled time.Duration) {
	if !f.stream.Deferred() {
		return end, waited
	}
	return deferredEnd(end, waited, f.sent)
}

// deferredEnd takes off what an answer was meant to wait at most. The rest is a stall, and part of the latency.
func deferredEnd(end, waited, sent time.Duration) (at, stalled time.Duration) {
	meant := min(waited, readWithin)
	return max(end-meant, sent), waited - meant
}
