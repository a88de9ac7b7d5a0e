package stubapi

import (
	"math/rand/v2"
	"time"
)

// Request describes a request to a policy.
type Request struct {
	N      int64 // number in the order of receipt, from 0
	Method string
	Path   string // without its query
	Query  string // as sent
	At     time.Time
	Watch  bool
}

// Answer decides how a request is answered. The zero value executes and answers
// it at once, as an API server does.
type Answer struct {
	// After is the time from receipt to execution, Ack from there to the
	// answer: a write's events are sent in between.
	After, Ack time.Duration
	// Status, if not 0, is answered instead, with RetryAfter in whole seconds
	// if it is over 0; nothing is executed.
	Status     int
	RetryAfter time.Duration
	// Fault is the failure to inject. Nothing is executed, unless the fault needs an
	// answer to spoil (Truncated, Cut, Garbled) or Commits says so.
	Fault   Fault
	Commits bool
}

// Fault is a way in which a server is bad.
type Fault uint8

// The faults of answers.
const (
	None Fault = iota
	// Reset resets the stream with INTERNAL_ERROR.
	Reset
	// GoAway ends the connection in order; this request and later ones on it
	// were not taken on.
	GoAway
	// Hangup closes the TCP connection without a word.
	Hangup
	// Silence: no answer, ever.
	Silence
	// Truncated ends the stream after half the bytes of its content-length.
	Truncated
	// Cut resets the stream after half the body.
	Cut
	// Garbled answers with a body that is neither JSON nor protobuf.
	Garbled
	// EndlessHeaders are CONTINUATION frames without end.
	EndlessHeaders
	// GiantHeader is one header field of 1 MiB.
	GiantHeader
	// BadFrame is a frame that RFC 9113 forbids: DATA on stream 0.
	BadFrame
)

// Policy decides how each request is answered: a pure function, called on many
// goroutines.
type Policy func(Request) Answer

// Only applies p to the requests that match.
func Only(match func(Request) bool, p Policy) Policy {
	return func(r Request) Answer {
		if !match(r) {
			return Answer{}
		}
		return p(r)
	}
}

// Fixed answers each request after d.
func Fixed(d time.Duration) Policy {
	return func(Request) Answer { return Answer{After: d} }
}

// Bimodal answers after fast, but a share of the requests, drawn by seed, after slow.
func Bimodal(fast, slow time.Duration, share float64, seed uint64) Policy {
	return func(r Request) Answer {
		if rand.New(rand.NewPCG(seed, uint64(r.N))).Float64() < share {
			return Answer{After: slow}
		}
		return Answer{After: fast}
	}
}

// Stall answers after base, but answers due from begin to end at the end.
func Stall(base time.Duration, begin, end time.Time) Policy {
	return func(r Request) Answer {
		at := r.At.Add(base)
		if !at.Before(begin) && at.Before(end) {
			at = end
		}
		return Answer{After: at.Sub(r.At)}
	}
}

// Always answers each request the same way.
func Always(a Answer) Policy { return func(Request) Answer { return a } }
