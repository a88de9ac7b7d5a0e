package stubapi

import (
	"math/rand/v2"
	"time"
)

// Request describes a request to the stub. It is the argument of a Policy.
type Request struct {
	N      int64 // number of the request, from 0, in the order in which the stub receives requests
	Method string
	Path   string // path of the URL, without the query
	Query  string // query of the URL, as the client sent it
	At     time.Time
	Watch  bool
}

// Answer says how the stub responds to a request. With the zero value, it executes the request and responds
// immediately, as an API server does.
type Answer struct {
	// After is the time from the receipt of the request to its execution. Ack is the time from the execution to the
	// response. The stub sends the events of a write when it executes the write, before Ack begins.
	After, Ack time.Duration
	// Status, if not 0, is the status of the response; the stub then does not execute the request. RetryAfter, if
	// positive, is the Retry-After header of this response, in whole seconds.
	Status     int
	RetryAfter time.Duration
	// Fault is the failure to inject. If the fault changes the response (Truncated, Cut, Garbled), the stub executes
	// the request first. With any other fault, it executes the request only if Commits is set.
	Fault   Fault
	Commits bool
}

// Fault is a failure that the stub injects into the response to a request.
type Fault uint8

// The faults that the stub can inject into a response.
const (
	None Fault = iota
	// Reset resets the stream with INTERNAL_ERROR.
	Reset
	// GoAway ends the connection with a GOAWAY frame. The frame says that this request and later requests on the
	// connection were not processed.
	GoAway
	// Hangup closes the TCP connection without an HTTP/2 frame.
	Hangup
	// Silence sends no response.
	Silence
	// Truncated ends the stream after half of the bytes that its content-length announces.
	Truncated
	// Cut resets the stream after half of the body.
	Cut
	// Garbled sends a body that is neither JSON nor protobuf.
	Garbled
	// EndlessHeaders sends CONTINUATION frames until the client closes the connection.
	EndlessHeaders
	// GiantHeader sends a header field of 1 MiB.
	GiantHeader
	// BadFrame sends a frame that RFC 9113 forbids: DATA on stream 0.
	BadFrame
)

// Policy decides how the stub responds to each request. A Policy must be a pure function, because many goroutines call
// it at the same time.
type Policy func(Request) Answer

// Only returns a policy that applies p to the requests for which `match` returns true. All other requests get the zero
// Answer.
func Only(match func(Request) bool, p Policy) Policy {
	return func(r Request) Answer {
		if !match(r) {
			return Answer{}
		}
		return p(r)
	}
}

// Fixed returns a policy that responds to each request after the time d.
func Fixed(d time.Duration) Policy {
	return func(Request) Answer { return Answer{After: d} }
}

// Bimodal returns a policy that responds to a fraction of the requests, `share`, after the duration `slow`, and to all
// others after the duration `fast`. The seed and the number of a request determine whether the request is slow.
func Bimodal(fast, slow time.Duration, share float64, seed uint64) Policy {
	return func(r Request) Answer {
		if rand.New(rand.NewPCG(seed, uint64(r.N))).Float64() < share {
			return Answer{After: slow}
		}
		return Answer{After: fast}
	}
}

// Stall returns a policy that responds to each request after the time `base`. It delays responses that are due between
// `begin` and `end` until `end`.
func Stall(base time.Duration, begin, end time.Time) Policy {
	return func(r Request) Answer {
		at := r.At.Add(base)
		if !at.Before(begin) && at.Before(end) {
			at = end
		}
		return Answer{After: at.Sub(r.At)}
	}
}

// Always returns a policy that returns the Answer a for all requests.
func Always(a Answer) Policy { return func(Request) Answer { return a } }
