package apiclient

import (
	"context"
	"time"
)

// What all who list and then watch have in common, as client-go's reflectors do it
// (client-go/tools/cache/reflector.go). Their streams are their own: a simulated
// node and a watch of the load are a handler on a connection's read loop, without a
// goroutine or an interface between them and the bytes, which lets ten
// thousand of them fit; a workload and a history read one stream each.
const (
	// ShortestWatch is the least time that a watch asks to last; the most is twice
	// that.
	ShortestWatch = 5 * time.Minute
	// TooShort is the life of a watch that ended at once with nothing to say: it has
	// failed.
	TooShort = time.Second
	// MostEvent bounds one watch event, in bytes. It is the largest that client-go
	// takes (rest/watch, through serializer/streaming).
	MostEvent = 16 << 20
)

// WatchBackoff is the wait after so many watches in a row that failed; random is from
// 0 to 1.
func WatchBackoff(failures int, random float64) time.Duration {
	return Backoff{First: 800 * time.Millisecond, Most: 30 * time.Second}.Wait(failures, random)
}

// WatchLength is how long a watch asks to last, between once and twice least; random
// is from 0 to 1.
func WatchLength(least time.Duration, random float64) time.Duration {
	return least + time.Duration(random*float64(least))
}

// Backoff is a wait that is doubled with each failure in a row.
type Backoff struct {
	First, Most time.Duration
}

// Wait is the wait after so many failures in a row, up to doubled by random, which is
// from 0 to 1.
func (b Backoff) Wait(failures int, random float64) time.Duration {
	d := b.First
	for range failures - 1 {
		if d = 2 * d; d >= b.Most {
			d = b.Most
			break
		}
	}
	return d + time.Duration(random*float64(d))
}

// Retry counts failures in a row, and waits after each. It is for one goroutine.
type Retry struct {
	Backoff
	failures int
}

// Reset begins again with the first wait.
func (r *Retry) Reset() { r.failures = 0 }

// Pause counts a failure and waits; false if ctx ended before.
func (r *Retry) Pause(ctx context.Context) bool {
	r.failures++
	return Pause(ctx, r.Wait(r.failures, 0))
}

// Pause waits for d; false if ctx ended before.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
