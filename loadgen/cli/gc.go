package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

const (
	// quietGC is the GOGC at low allocation rates: the heap grows by half of its live size before a collection.
	quietGC = 50
	// busyGC is the value of GOGC at high allocation rates: the heap grows to three times its live size. With Go's
	// default of 100, garbage collection took half of the generator's CPU time while thousands of nodes registered. The
	// control plane on the same machine lacked this time.
	busyGC = 200
	// busyRate is the lowest allocation rate, in bytes per second, at which tuneGC sets busyGC. At lower rates, quietGC
	// costs less than 1% of a processor.
	busyRate = 16 << 20
)

// isGenerator reports whether a command sends load or simulates nodes.
func isGenerator(cmd *cobra.Command) bool {
	return slices.Contains([]string{"run", "ab", "capacity", "nodes", "worker"}, cmd.Name())
}

// tuneGC sets GOGC according to the allocation rate, once per second until ctx ends. If the environment variable GOGC
// is set, it does nothing.
func tuneGC(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(quietGC)
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for percent, last := quietGC, allocated(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		now := allocated()
		if p := gcPercent(now - last); p != percent { // only if necessary: a change stops all goroutines for a moment
			percent = p
			debug.SetGCPercent(p)
		}
		last = now
	}
}

// gcPercent returns the value of GOGC, in percent, for an allocation rate in bytes per second.
func gcPercent(rate uint64) int {
	if rate >= busyRate {
		return busyGC
	}
	return quietGC
}

// allocated returns the bytes that the program has allocated since its start.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
