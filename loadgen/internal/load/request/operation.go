// Package request is the open-loop request engine: one dispatcher that sends
// each arrival of a schedule when it is due, over a few HTTP/2 connections,
// and accounts for every one of them.
package request

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// Operation says what the arrivals of a load are. It depends on their number and the seed alone, however many
// could not be sent.
type Operation interface {
	// Kinds separate results. Request.Kind is an index.
	Kinds() []Kind
	// Prepare makes the objects and finds the resources. Errors name verb and object, with a hint.
	Prepare(ctx context.Context) error
	// Background works beside the load until ctx ends, or returns at once without work.
	Background(ctx context.Context)
	// KindOf returns the kind of arrival n, an index into Kinds. It depends on n and the seed alone.
	KindOf(n int64) int
	// Next fills r, empty but for N, Kind and its buffers. False: nothing is free to work on, the arrival is
	// unsent. It is called in order, for arrivals with a free slot, and must not block.
	Next(n int64, r *Request) bool
	// Data receives each piece of an answer's body on the read loop, and an empty one at its end. An error counts
	// the answer as malformed.
	Data(r *Request, status int, p []byte) error
	// Done is called at the end of each request, mostly on the read loop, and must not block. True asks to send r
	// again as Done has filled it: the next page of a list. The arrival's latency goes on; its outcome is the
	// last.
	Done(r *Request, o load.Outcome, end time.Time) (again bool)
}

// Kind is the key of results, by the fields of result.Requests.
type Kind struct{ Verb, Resource, Variant, Tenant string }

// Request is one arrival's. The engine owns it; Path, Body and Scratch keep their memory.
type Request struct {
	// N is the arrival's number; Key is the operation's own.
	N, Key int64
	// Kind is Operation.KindOf(N).
	Kind int
	// Template has method and headers, encoded once.
	Template *h2conn.Template
	// Path with its query, percent-encoded.
	Path []byte
	// Body of a write; empty: none.
	Body []byte
	// Scratch is the operation's, from Next to Done.
	Scratch []byte
	// State is the operation's. It stays from one arrival to the next; nil in a new Request.
	State any
}

// Unhurried is an Operation of which nothing follows from an answer: Done never asks for more, and what is sent next does not depend on it. Its
// answers may be read a little after they came.
type Unhurried interface {
	Operation
	Unhurried()
}
