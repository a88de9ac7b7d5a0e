package apiclient

import (
	"context"
	"time"
)

// RefusedBudget bounds retries of requests that are answered 401 or 403: an API server that has just started answers so
// until it has read its RBAC rules.
const RefusedBudget = 15 * time.Second

// Backoff is a wait that is doubled with each failure in a row.
type Backoff struct {
	First, Most time.Duration
}

// Wait is the wait after so many failures in a row, lengthened up to twofold by random, from 0 to 1.
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
