package load

import (
	"context"
	"time"
)

// Share is the part of each load that one of several workers generates: the arrivals, watches and objects whose number
// modulo Of equals Index. The zero value is the whole load.
type Share struct {
	Index, Of int
	// Run is an identifier of the run, the same for all its workers. It distinguishes their writes from the writes of
	// other runs.
	Run string
}

// First returns the lowest number in the share.
func (s Share) First() int64 { return int64(s.Index) }

// Step returns the difference between consecutive numbers of the share.
func (s Share) Step() int64 { return int64(max(s.Of, 1)) }

// Number returns the i-th number of the share, from 0.
func (s Share) Number(i int) int { return s.Index + i*max(s.Of, 1) }

// Part returns how many of the numbers from 0 to n-1 belong to the share.
func (s Share) Part(n int) int {
	return max(0, (n-s.Index+max(s.Of, 1)-1)/max(s.Of, 1))
}

// Whole reports whether the share is the whole load.
func (s Share) Whole() bool { return s.Of <= 1 }

// Ack notifies the other workers that a measured write of one worker was acknowledged, because their watches must
// deliver the write too.
type Ack struct {
	// Load is the name of the load of kind "changes". From is the index of the worker that wrote.
	Load string
	From int
	// Seq is the write's number, and RV the resourceVersion of the written object.
	Seq int64
	RV  uint64
	// At is the time at which the worker received the acknowledgement. It may have arrived up to Late earlier.
	At   time.Time
	Late time.Duration
	// Uncertain is the maximum error of At, converted to the clock of the worker that receives the Ack.
	Uncertain time.Duration
}

type startKey struct{}

// StartAt returns a context for Load.Run that makes the schedule of arrivals start at t, by this machine's clock.
func StartAt(ctx context.Context, t time.Time) context.Context {
	now := time.Now()
	return context.WithValue(ctx, startKey{}, now.Add(t.Sub(now))) // with a monotonic reading
}

// StartOf returns the start time that StartAt stored in ctx, or the current time.
func StartOf(ctx context.Context) time.Time {
	if t, ok := ctx.Value(startKey{}).(time.Time); ok {
		return t
	}
	return time.Now()
}
