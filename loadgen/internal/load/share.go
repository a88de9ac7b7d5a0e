package load

import (
	"context"
	"time"
)

// Share is the part of each load that one of several workers does: the arrivals, watches and objects whose number modulo Of is
// Index. The zero value is the whole load.
type Share struct {
	Index, Of int
	// Run distinguishes the writes of this run's workers from the writes of other runs. It is the same for all
	// workers.
	Run string
}

// First returns the lowest number in the share.
func (s Share) First() int64 { return int64(s.Index) }

// Step returns the distance between consecutive numbers of the share.
func (s Share) Step() int64 { return int64(max(s.Of, 1)) }

// Number returns the i-th number of the share, from 0.
func (s Share) Number(i int) int { return s.Index + i*max(s.Of, 1) }

// Part returns how many of the numbers 0 to n-1 are in the share.
func (s Share) Part(n int) int {
	return max(0, (n-s.Index+max(s.Of, 1)-1)/max(s.Of, 1))
}

// Whole reports whether there is one worker.
func (s Share) Whole() bool { return s.Of <= 1 }

// Ack is a measured write of one worker that was acknowledged. The watches of all workers must deliver it.
type Ack struct {
	// Load is the name of the load of kind "changes", and From the number of the worker that wrote.
	Load string
	From int
	// Seq is the write's number, and RV the resourceVersion of the written object.
	Seq int64
	RV  uint64
	// At is when the generator saw the acknowledgement, which may have arrived up to Late earlier.
	At   time.Time
	Late time.Duration
	// Uncertain bounds the error of At on the receiver's clock.
	Uncertain time.Duration
}

type startKey struct{}

// StartAt returns a context that makes Load.Run count its arrivals from t, on this machine's clock.
func StartAt(ctx context.Context, t time.Time) context.Context {
	now := time.Now()
	return context.WithValue(ctx, startKey{}, now.Add(t.Sub(now))) // with a monotonic reading
}

// StartOf returns the time set by StartAt, or now.
func StartOf(ctx context.Context) time.Time {
	if t, ok := ctx.Value(startKey{}).(time.Time); ok {
		return t
	}
	return time.Now()
}
