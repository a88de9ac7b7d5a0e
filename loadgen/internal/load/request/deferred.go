package request

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Deferred answers save CPU. Waking the process for an answer costs several times as much CPU as reading the answer,
// and an API server sends each answer in two pieces. A load that sends nothing in reaction to an answer can therefore
// read its answers when the dispatcher wakes up for the next arrival. The kernel reports when the answer arrived.
// This time is the end of the request.
const (
	// readWithin is the longest time for which the engine intentionally leaves an answer unread.
	readWithin = 5 * time.Millisecond
	// idleRead is the interval of reads of connections without requests in flight, which the server may have closed.
	idleRead = time.Second
	// goneWithin is the maximum time since the last read of a connection on which a request is sent. Otherwise the
	// connection is read first, because the server may have closed it.
	goneWithin = 50 * time.Millisecond
	// The highest rate and number of connections of a load whose answers are deferred. Up to these limits, two
	// answers rarely arrive on one connection between two reads. If that happens, both requests end at the arrival of
	// the second answer, because the kernel reports only the time of the last byte.
	deferredRate        = 1000 // per second
	deferredConnections = 8
)

// defersAnswers reports whether a load may defer reading its answers.
func defersAnswers(l scenario.Load, op Operation, connections int) bool {
	_, unhurried := op.(Unhurried)
	return unhurried && l.Rate <= deferredRate && l.Shape.Kind == "" && connections <= deferredConnections
}

// receive reads the deferred answers that have arrived.
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

// nextRead returns the latest time of the next read of deferred answers.
func (e *engine) nextRead() time.Duration {
	if e.inFlight.Load() > 0 {
		return e.now() + readWithin
	}
	return e.now() + idleRead
}

// came returns the time at which an answer arrived that was read at end, and the part of its wait that is a stall of
// the generator. waited is the time between arrival and read.
func (f *flight) came(end, waited time.Duration) (at, stalled time.Duration) {
	if !f.stream.Deferred() {
		return end, waited
	}
	return deferredEnd(end, waited, f.sent)
}

// deferredEnd returns the end of a request whose answer was read at end after a wait. Up to readWithin, the wait was
// intended and is not part of the latency. The rest of the wait is a stall, and is part of the latency.
func deferredEnd(end, waited, sent time.Duration) (at, stalled time.Duration) {
	meant := min(waited, readWithin)
	return max(end-meant, sent), waited - meant
}
