package run

import (
	"context"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Progress shows what the run does. Its methods may be called from several
// goroutines.
type Progress interface {
	// Step is one line about something done or begun.
	Step(line string)
	// Live is the state of the run, once a second.
	Live(Snapshot)
}

// Snapshot is the state of the run shown while it runs.
type Snapshot struct {
	Phase string
	// Elapsed in the phase; Length of it, or its `within`.
	Elapsed, Length time.Duration
	Until           string
	// Offered and Achieved are requests per second over the last second, P99
	// their latency from the intended start over the same time.
	Offered, Achieved     float64
	P99                   time.Duration
	Nodes, NodesReady     int
	PodsWanted, PodsReady int64
	WatchesOpen           int
	// Delivered counts watch events, since the start.
	Delivered int64
}

type display struct {
	progress Progress
	loads    *loads
	nodes    *nodes
	workload *workload.Workload

	mu      sync.Mutex
	current *scenario.Phase
	start   time.Time
}

func (d *display) beginPhase(p *scenario.Phase, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current, d.start = p, at
}

func (d *display) run(ctx context.Context) error {
	everySecond(ctx, func(now time.Time) { d.progress.Live(d.snapshot(now)) })
	return nil
}

func everySecond(ctx context.Context, f func(now time.Time)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			f(now)
		}
	}
}

func (d *display) snapshot(now time.Time) Snapshot {
	d.mu.Lock()
	p, start := d.current, d.start
	d.mu.Unlock()
	var s Snapshot
	if p != nil {
		s.Phase, s.Until, s.Elapsed, s.Length = p.Name, p.Until, now.Sub(start), p.For.D()
		if p.Until != "" {
			s.Length = p.Within.D()
		}
	}
	d.loads.snapshot(&s)
	s.Nodes, s.NodesReady = d.nodes.live()
	w := d.workload.Live()
	s.PodsWanted, s.PodsReady = w.PodsWanted, w.PodsReady
	return s
}
