package load

import (
	"context"
	"time"
)

// Share is one worker's part of each load: the arrivals, watches and objects whose number modulo Of equals Index. The
// zero value is the whole load.
type Share struct {
	Index, Of int
	// Run is an identifier of the run, the same for all its workers. It distinguishes their writes from the writes of
	// other runs.
	Run string
}

// First returns the lowest number of an arrival, watch or object in the share.
func (s Share) First() int64 { return int64(s.Index) }

// Step returns the difference between consecutive numbers in the share, at least 1.
func (s Share) Step() int64 { return int64(max(s.Of, 1)) }

// Number returns the i-th number in the share, for i from 0.
func (s Share) Number(i int) int { return s.Index + i*max(s.Of, 1) }

// Part returns how many of the numbers from 0 to n-1 belong to the share.
func (s Share) Part(n int) int {
	return max(0, (n-s.Index+max(s.Of, 1)-1)/max(s.Of, 1))
}

// Whole reports whether the share is the whole load.
func (s Share) Whole() bool { return s.Of <= 1 }

// Ack notifies the other workers that the API server acknowledged a worker's measured write. The watches of the other
// workers must deliver that write too.
type Ack struct {
	// Load is the name of the load of kind "changes". From is the index of the worker that wrote.
	Load string
	From int
	// Seq is the write's number, and RV the resourceVersion of the written object.
	Seq int64
	RV  uint64
	// At is the time at which the worker received the acknowledgement. The acknowledgement may have arrived up to Late
	// earlier.
	At   time.Time
	Late time.Duration
	// Uncertain is the maximum error of At after its conversion to the clock of the worker that receives the Ack.
	Uncertain time.Duration
}

type startKey struct{}

// StartAt returns a context for Load.Run. It makes the schedule of arrivals start at the time t on this machine's
// clock.
func StartAt(ctx context.Context, t time.Time) context.Context {
	now := time.Now()
	return context.WithValue(ctx, startKey{}, now.Add(t.Sub(now))) // now has a monotonic clock reading, t may have none
}

// StartOf returns the start time that StartAt stored in ctx, or the current time.
func StartOf(ctx context.Context) time.Time {
	if t, ok := ctx.Value(startKey{}).(time.Time); ok {
		return t
	}
	return time.Now()
}
