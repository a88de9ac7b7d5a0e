package load

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// AtOnce bounds requests under way that prepare or clean up a cluster, which are not measured.
const AtOnce = 16

// Parallel calls f with 0 to n-1, a few at a time, until one fails, and returns that error, or the cause of ctx's
// end.
func Parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	workers, working := errgroup.WithContext(ctx)
	workers.SetLimit(AtOnce)
	for i := 0; i < n && working.Err() == nil; i++ {
		workers.Go(func() error { return f(working, i) })
	}
	err := workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
