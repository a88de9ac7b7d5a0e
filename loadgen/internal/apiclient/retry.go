package apiclient

import (
	"context"
	"time"
)

// RefusedBudget is how long clients retry a request while the response is 401 or 403. An API server that has just
// started may send these until it has read its RBAC rules.
const RefusedBudget = 15 * time.Second

// Backoff computes waits that double with each consecutive failure, from First up to Most.
type Backoff struct {
	First, Most time.Duration
}

// Wait returns the wait after the given number of consecutive failures. random, from 0 to 1, is the jitter: the wait
// becomes longer by this fraction.
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

// Pause waits for d. It returns false if ctx ended first.
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
