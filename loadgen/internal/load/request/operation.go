// Package request is the open-loop request engine. One dispatcher sends a request at each arrival of a schedule, over a
// few HTTP/2 connections, and counts every arrival, even if its request could not be sent.
package request

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// Operation defines the requests of a load. A request should depend only on the number of its arrival and on the seed,
// not on whether earlier arrivals could be sent.
type Operation interface {
	// Kinds returns the kinds of requests. Each kind has separate results. Request.Kind is an index into this slice.
	Kinds() []Kind
	// Prepare finds the resources and creates the objects. Its errors contain the verb, the object and a hint.
	Prepare(ctx context.Context) error
	// Background does work that the requests need, such as renewing tokens, until ctx ends. It returns immediately if
	// there is no such work.
	Background(ctx context.Context)
	// KindOf returns the kind of the request of arrival n, as an index into Kinds. It depends only on n and the seed.
	KindOf(n int64) int
	// Next fills in the request r of arrival n. Only N, Kind and the buffers are already set. It returns false if no
	// object is free; the arrival then counts as unsent. The engine calls Next in the order of n, but not for arrivals
	// over the limit of requests in flight. Next must not block.
	Next(n int64, r *Request) bool
	// Data receives the body of a response as it arrives, on the read loop. An empty p marks the end of the body. If
	// Data returns an error, the response counts as malformed.
	Data(r *Request, status int, p []byte) error
	// Done handles the end of each request, usually on the read loop. Done must not block. If it returns true, the
	// engine sends r again with the fields that Done has set, for the next page of a list. The latency then includes
	// all requests of the arrival, and the outcome is the last request's outcome.
	Done(r *Request, o load.Outcome, end time.Time) (again bool)
}

// Kind identifies a kind of request in the results. See result.Requests for the fields.
type Kind struct{ Verb, Resource, Variant, Tenant string }

// Request is the request of one arrival. The engine owns and reuses Requests, with the memory of Path, Body and
// Scratch.
type Request struct {
	// N is the number of the arrival. Key is for any use by the operation.
	N, Key int64
	// Kind is the result of Operation.KindOf(N).
	Kind int
	// Template contains the encoded method and headers.
	Template *h2conn.Template
	// Path is the percent-encoded path with the query.
	Path []byte
	// Body is the body of a write, or empty.
	Body []byte
	// Scratch is a buffer that the operation may use between Next and Done.
	Scratch []byte
	// State is for any use by the operation. It is nil in a new Request and is kept when the Request is reused.
	State any
}

// Unhurried is an Operation that sends nothing in reaction to a response: Done always returns false, and later requests
// do not depend on earlier responses. The engine may therefore read the responses a little after they arrive.
type Unhurried interface {
	Operation
	Unhurried()
}
