package request

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Waking the process for an answer costs several times as much as reading the answer, and an API server sends each answer in
// two pieces. If a load sends nothing in reaction to an answer, the dispatcher reads its answers when it wakes up for the next
// arrival. The kernel reports when an answer arrived, and the request ends at that time.
const (
	// readWithin is the maximum time that an answer waits to be read.
	readWithin = 5 * time.Millisecond
	// idleRead is the time between reads of connections on which no answer is due. They are read because a server may close
	// them.
	idleRead = time.Second
	// goneWithin is the time since the last read after which a connection is read before a request is sent on it, because the
	// server may have closed the connection.
	goneWithin = 50 * time.Millisecond
	// Answers are deferred only up to deferredRate and deferredConnections. Then two answers rarely arrive on one connection
	// between two reads. If they do, both end at the time of the second, because the kernel reports the time of the last byte.
	deferredRate        = 1000 // per second
	deferredConnections = 8
)

// defersAnswers reports whether the answers of a load may wait to be read.
func defersAnswers(l scenario.Load, op Operation, connections int) bool {
	_, unhurried := op.(Unhurried)
	return unhurried && l.Rate <= deferredRate && l.Shape.Kind == "" && connections <= deferredConnections
}

// receive reads deferred answers.
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

// nextRead returns the time by which deferred answers must be read.
func (e *engine) nextRead() time.Duration {
	if e.inFlight.Load() > 0 {
		return e.now() + readWithin
	}
	return e.now() + idleRead
}

// came returns when an answer that is read at end arrived, and how much of its wait to be read is a stall.
func (f *flight) came(end, waited time.Duration) (at, stalled time.Duration) {
	if !f.stream.Deferred() {
		return end, waited
	}
	return deferredEnd(end, waited, f.sent)
}

// deferredEnd subtracts the intended wait of an answer, at most readWithin, from end. The rest of the wait is a stall, and part
// of the latency.
func deferredEnd(end, waited, sent time.Duration) (at, stalled time.Duration) {
	meant := min(waited, readWithin)
	return max(end-meant, sent), waited - meant
}
