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

// Operation says what the arrivals of a load are. What an arrival works on
// depends on its number and the seed alone, so that the same seed makes the
// same sequence, however many arrivals could not be sent.
type Operation interface {
	// Kinds are what results are kept apart by, in a fixed order: one for each
	// verb, resource and variant, times tenants. Request.Kind is an index.
	Kinds() []Kind
	// Prepare makes the objects and finds the resources. Errors name verb and
	// object, with a hint.
	Prepare(ctx context.Context) error
	// Background works beside the load until ctx ends (names are renewed,
	// tokens too). It returns at once if there is nothing to do.
	Background(ctx context.Context)
	// KindOf returns the kind of request of arrival n, whether it can be sent or
	// not: an index into Kinds. It depends on n and the seed alone.
	KindOf(n int64) int
	// Next fills r, which is empty but for N, Kind and its buffers, with what
	// arrival n asks. False: nothing is free to work on, the arrival is unsent. The
	// dispatcher calls it, in order, for arrivals that have a free slot. It
	// must not block.
	Next(n int64, r *Request) bool
	// Data receives each piece of the body of an answer, on the connection's
	// read loop, and an empty one at the end of a whole answer; an error counts
	// the answer as malformed. Status is that of the answer.
	Data(r *Request, status int, p []byte) error
	// Done is called at the end of each request that Next gave out, mostly on the
	// connection's read loop, where it must not block. True asks to send r
	// again as Done has filled it anew: the next page of a list. The latency of
	// the arrival then goes on; its outcome is that of the last.
	Done(r *Request, o load.Outcome, end time.Time) (again bool)
}

// Kind is the key of results: the fields of that name in
// result.Requests.
type Kind struct{ Verb, Resource, Variant, Tenant string }

// Request is one arrival's request. The engine owns and reuses it; Path, Body
// and Scratch keep their memory from one arrival to the next.
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
	// Scratch is the operation's, between Next, Data and Done: what of the
	// answer it needs.
	Scratch []byte
	// State is the operation's, as Scratch. It stays from one arrival to the
	// next, so that its memory may be used again; nil in a new Request.
	State any
}
