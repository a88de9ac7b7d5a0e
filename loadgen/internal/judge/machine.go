package judge

import (
	"context"
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// fillMachine sets facts about the generator's machine in each phase of a recorded run: the requests of other clients
// (from the archive), notes for the report, and why the machine was busy. It replaces facts from an earlier call. It
// fails only if ctx ends.
func fillMachine(ctx context.Context, rec *rundir.Recorded) error {
	ours := machine.Ours(rec.Run)
	phases := slices.Clone(rec.Measurements.Phases)
	for i := range phases {
		p := &phases[i]
		if p.Machine == nil {
			continue
		}
		m := *p.Machine
		p.Machine, m.ClientRequests, m.ClientSeconds, m.Busy, m.Notes = &m, nil, nil, "", nil
		if ours && rec.Archive != nil {
			var err error
			if m.ClientRequests, m.ClientSeconds, err = clientsOf(ctx, rec.Archive, *p); err != nil {
				return err
			}
		}
		if f, ok := machine.Of(&m, p.Seconds(), rec.Run.Host.CPUs, ours); ok {
			m.Busy, m.Notes = f.Busy(), f.Notes()
		}
	}
	rec.Measurements.Phases = phases
	return nil
}

// clientsOf returns the number of requests from other clients in a phase, and the CPU time in seconds that these
// clients may have used. Other clients are all clients except loadgen and the control plane's components. Both results
// are nil if unknown, for example in runs that did not count their own requests. It fails only if ctx ends.
func clientsOf(ctx context.Context, a *archive.Archive, p result.Phase) (requests, seconds *float64, err error) {
	for _, f := range []struct {
		rate func(over string) string
		into **float64
	}{{machine.Clients, &requests}, {machine.ClientProcessors, &seconds}} {
		samples, err := a.Instant(ctx, f.rate(archive.Window(p.Start, p.End)), p.End)
		if err != nil || len(samples) == 0 {
			return nil, nil, ctx.Err()
		}
		*f.into = new(samples[0].V * p.Seconds())
	}
	return requests, seconds, nil
}
