// Package request is the open-loop request engine. One dispatcher sends a request at each arrival of a schedule, over
// a few HTTP/2 connections, and counts every arrival, also if its request could not be sent.
package request

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// Operation defines the requests of a load. A request depends only on the number of its arrival and on the seed, not on
// whether earlier arrivals could be sent.
type Operation interface {
	// Kinds returns the kinds of requests. Each kind has separate results. Request.Kind is an index into Kinds.
	Kinds() []Kind
	// Prepare finds the resources and creates the objects. Its errors contain the verb, the object and a hint.
	Prepare(ctx context.Context) error
	// Background does work that the requests need, such as renewing tokens, until ctx ends. It returns immediately if
	// there is no such work.
	Background(ctx context.Context)
	// KindOf returns the index in Kinds of the request of arrival n. It depends only on n and the seed.
	KindOf(n int64) int
	// Next fills in r, in which only N, Kind and the buffers are set. It returns false if no object is free; the
	// arrival then counts as unsent. It is called in the order of n, and only for arrivals within the limit of
	// requests in flight. It must not block.
	Next(n int64, r *Request) bool
	// Data receives each piece of an answer's body on the read loop, and an empty piece at the end. If it returns an
	// error, the answer counts as malformed.
	Data(r *Request, status int, p []byte) error
	// Done is called at the end of each request, usually on the read loop. It must not block. If it returns true, r is
	// sent again with the fields that Done has set, to request the next page of a list. The latency then includes all
	// requests of the arrival, and the outcome is the outcome of the last.
	Done(r *Request, o load.Outcome, end time.Time) (again bool)
}

// Kind identifies a kind of request in the results. See result.Requests for the fields.
type Kind struct{ Verb, Resource, Variant, Tenant string }

// Request is the request of one arrival. The engine owns and reuses it. Path, Body and Scratch keep their memory.
type Request struct {
	// N is the number of the arrival. Key is free for use by the operation.
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
	// State is free for use by the operation. It is nil in a new Request and is kept when the Request is reused.
	State any
}

// Unhurried is an Operation that sends nothing in reaction to an answer: Done always returns false, and later requests
// do not depend on earlier answers. The engine may therefore read the answers a little after they arrive.
type Unhurried interface {
	Operation
	Unhurried()
}
