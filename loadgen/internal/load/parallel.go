package load

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// AtOnce is the maximum number of concurrent requests while a run prepares or cleans up a cluster.
const AtOnce = 16

// Parallel calls f for each i from 0 to n-1, with at most AtOnce concurrent calls. After the first error it starts no
// more calls and returns that error. If ctx ends, it returns context.Cause(ctx).
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
