package stubapi

import (
	"math/rand/v2"
	"time"
)

// Request describes a request to a policy.
type Request struct {
	N      int64 // number of the request, in the order of receipt from 0
	Method string
	Path   string // without the query
	Query  string // as the client sent it
	At     time.Time
	Watch  bool
}

// Answer says how a request is answered. The zero value executes and answers the request immediately, as an API server does.
type Answer struct {
	// After is the time from the receipt of the request to its execution. Ack is the time from the execution to the answer;
	// the events of a write are sent before Ack begins.
	After, Ack time.Duration
	// Status, if not 0, is the status that is answered instead of executing the request. RetryAfter, if positive, is sent
	// with it, in whole seconds.
	Status     int
	RetryAfter time.Duration
	// Fault is the failure to inject. The request is executed only if the fault changes an answer (Truncated, Cut, Garbled) or
	// if Commits is set.
	Fault   Fault
	Commits bool
}

// Fault is a failure that the server injects into the answer to a request.
type Fault uint8

// The faults of answers.
const (
	None Fault = iota
	// Reset resets the stream with INTERNAL_ERROR.
	Reset
	// GoAway ends the connection with a GOAWAY frame: this request and later ones on the connection were not processed.
	GoAway
	// Hangup closes the TCP connection without an HTTP/2 frame.
	Hangup
	// Silence never answers.
	Silence
	// Truncated ends the stream after half the bytes of its content-length.
	Truncated
	// Cut resets the stream after half the body.
	Cut
	// Garbled answers with a body that is neither JSON nor protobuf.
	Garbled
	// EndlessHeaders sends CONTINUATION frames until the client closes the connection.
	EndlessHeaders
	// GiantHeader sends a header field of 1 MiB.
	GiantHeader
	// BadFrame sends a frame that RFC 9113 forbids: DATA on stream 0.
	BadFrame
)

// Policy decides how each request is answered. It is a pure function, and many goroutines call it at the same time.
type Policy func(Request) Answer

// Only returns a policy that applies p to the requests that match, and executes and answers all other requests immediately.
func Only(match func(Request) bool, p Policy) Policy {
	return func(r Request) Answer {
		if !match(r) {
			return Answer{}
		}
		return p(r)
	}
}

// Fixed returns a policy that answers each request after d.
func Fixed(d time.Duration) Policy {
	return func(Request) Answer { return Answer{After: d} }
}

// Bimodal returns a policy that answers a share of the requests after slow and the rest after fast. The seed and a request's number
// determine whether the request is slow.
func Bimodal(fast, slow time.Duration, share float64, seed uint64) Policy {
	return func(r Request) Answer {
		if rand.New(rand.NewPCG(seed, uint64(r.N))).Float64() < share {
			return Answer{After: slow}
		}
		return Answer{After: fast}
	}
}

// Stall returns a policy that answers after base, except that it holds answers that are due between begin and end until end.
func Stall(base time.Duration, begin, end time.Time) Policy {
	return func(r Request) Answer {
		at := r.At.Add(base)
		if !at.Before(begin) && at.Before(end) {
			at = end
		}
		return Answer{After: at.Sub(r.At)}
	}
}

// Always returns a policy that gives each request the same answer.
func Always(a Answer) Policy { return func(Request) Answer { return a } }
