// Package request is the open-loop request engine: one dispatcher that sends each arrival of a schedule when it is due,
// over a few HTTP/2 connections, and accounts for every arrival.
package request

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// Operation defines the requests of a load. They depend only on the number of their arrival and the seed, not on earlier
// arrivals that could not be sent.
type Operation interface {
	// Kinds returns the kinds of requests, which have separate results. Request.Kind is an index into them.
	Kinds() []Kind
	// Prepare finds the resources and creates the objects. Its errors name the verb and the object, with a hint.
	Prepare(ctx context.Context) error
	// Background works concurrently with the load until ctx ends. It returns immediately if it has no work.
	Background(ctx context.Context)
	// KindOf returns the kind of arrival n, an index into Kinds. It depends only on n and the seed.
	KindOf(n int64) int
	// Next fills in r, in which only N, Kind and the buffers are set. It returns false if no object is free; then the arrival
	// is unsent. It is called in order, only for arrivals that found a free slot, and must not block.
	Next(n int64, r *Request) bool
	// Data receives each piece of an answer's body on the read loop, and an empty piece at its end. An error counts the
	// answer as malformed.
	Data(r *Request, status int, p []byte) error
	// Done is called at the end of each request, mostly on the read loop, and must not block. It returns true to send r
	// again as filled by Done: the next page of a list. The arrival's latency continues to count; its outcome is the
	// last one.
	Done(r *Request, o load.Outcome, end time.Time) (again bool)
}

// Kind is the key of a result. Its fields are described at result.Requests.
type Kind struct{ Verb, Resource, Variant, Tenant string }

// Request is the request of one arrival. The engine owns and reuses it; Path, Body and Scratch keep their memory.
type Request struct {
	// N is the arrival's number; Key belongs to the operation.
	N, Key int64
	// Kind is Operation.KindOf(N).
	Kind int
	// Template holds the encoded method and headers.
	Template *h2conn.Template
	// Path includes the query and is percent-encoded.
	Path []byte
	// Body is the body of a write; empty means no body.
	Body []byte
	// Scratch belongs to the operation, from Next to Done.
	Scratch []byte
	// State belongs to the operation. It is kept from one arrival to the next, and nil in a new Request.
	State any
}

// Unhurried is an Operation that sends nothing in reaction to an answer: Done always returns false, and later requests do not
// depend on earlier answers. Its answers may be read a little after they arrive.
type Unhurried interface {
	Operation
	Unhurried()
}
