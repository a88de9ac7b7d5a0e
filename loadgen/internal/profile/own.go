package profile

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"time"
)

const (
	// mutexFraction is the fraction of mutex contention events to sample: one in five, as in etcd.
	mutexFraction = 5
	// blockRate is the block profile rate: one sample per 10,000 ns of blocking on average.
	blockRate = 10_000
)

// Own returns the Source for this process. Its mutex and block profiles contain only events between Watch and stop,
// because sampling these events costs CPU time.
func Own(component string) Source { return Source{component, component, takeOwn} }

// Watch starts to sample the events that the given kinds of profile of this process need. stop ends the sampling.
func Watch(kinds []string) (stop func()) {
	mutexes, blocks := false, false
	for _, kind := range kinds {
		mutexes, blocks = mutexes || kind == mutex, blocks || kind == block
	}
	if mutexes {
		runtime.SetMutexProfileFraction(mutexFraction)
	}
	if blocks {
		runtime.SetBlockProfileRate(blockRate)
	}
	return func() {
		if mutexes {
			runtime.SetMutexProfileFraction(0)
		}
		if blocks {
			runtime.SetBlockProfileRate(0)
		}
	}
}

func takeOwn(ctx context.Context, kind string, length time.Duration, into io.Writer) error {
	if kind != cpu {
		p := pprof.Lookup(kind)
		if p == nil {
			return fmt.Errorf("no profile %q", kind)
		}
		return p.WriteTo(into, 0)
	}
	if err := pprof.StartCPUProfile(into); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
