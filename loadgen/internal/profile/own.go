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
	// mutexFraction makes the runtime sample one of five waits for a mutex, as etcd does.
	mutexFraction = 5
	// blockRate makes the runtime sample one blocking event per 10,000 ns of blocking.
	blockRate = 10_000
)

// Own returns the Source for this process. Mutexes and blocking are sampled only from Watch until its stop, because
// sampling costs CPU.
func Own(component string) Source { return Source{component, component, takeOwn} }

// Watch makes this process sample what the given kinds of profile need, until stop is called.
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
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
