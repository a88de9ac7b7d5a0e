package request

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Deferred answers save CPU. Waking the process for an answer costs several times as much as reading the answer, and an
// API server sends each answer in two pieces. A load that sends nothing in reaction to an answer can therefore read its
// answers when the dispatcher wakes up for the next arrival. The kernel reports when the answer arrived, and this is
// the time at which the request ends.
const (
	// readWithin is the maximum intended wait of an answer before it is read.
	readWithin = 5 * time.Millisecond
	// idleRead is the interval at which connections without requests in flight are read, because a server may have
	// closed them.
	idleRead = time.Second
	// goneWithin is the time after which a connection must be read again before a request is sent on it, because the
	// server may have closed it since the last read.
	goneWithin = 50 * time.Millisecond
	// Limits up to which answers are deferred. Up to these limits, two answers rarely arrive on one connection between
	// two reads. If that happens, both requests end at the arrival of the second answer, because the kernel reports
	// only the time of the last byte.
	deferredRate        = 1000 // per second
	deferredConnections = 8
)

// defersAnswers reports whether a load may defer reading its answers.
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

// nextRead returns when deferred answers must be read at the latest.
func (e *engine) nextRead() time.Duration {
	if e.inFlight.Load() > 0 {
		return e.now() + readWithin
	}
	return e.now() + idleRead
}

// came returns the arrival time of an answer that was read at end after it had waited, and the part of the wait that is
// a stall of the generator.
func (f *flight) came(end, waited time.Duration) (at, stalled time.Duration) {
	if !f.stream.Deferred() {
		return end, waited
	}
	return deferredEnd(end, waited, f.sent)
}

// deferredEnd returns end minus the intended wait of an answer, which is at most readWithin. The rest of the wait is a
// stall and part of the latency.
func deferredEnd(end, waited, sent time.Duration) (at, stalled time.Duration) {
	meant := min(waited, readWithin)
	return max(end-meant, sent), waited - meant
}
