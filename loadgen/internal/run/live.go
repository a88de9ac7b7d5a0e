package run

import (
	"context"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// liveView remembers the phase for the once-a-second snapshot.
type liveView struct {
	mu      sync.Mutex
	current *scenario.Phase
	start   time.Time
}

func (v *liveView) phase(p *scenario.Phase, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current, v.start = p, at
}

// showLive tells Progress the state of the run once a second.
func (r *run) showLive(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			r.Progress.Live(r.snapshot(now))
		}
	}
}

// snapshot asks everything that counts for its present state.
func (r *run) snapshot(now time.Time) Snapshot {
	r.live.mu.Lock()
	p, start := r.live.current, r.live.start
	r.live.mu.Unlock()
	var s Snapshot
	if p != nil {
		s.Phase, s.Until, s.Elapsed, s.Length = p.Name, p.Until, now.Sub(start), p.For.D()
		if p.Until != "" {
			s.Length = p.Within.D()
		}
	}
	r.loads.snapshot(&s)
	if r.fleet != nil {
		n := r.fleet.Live()
		s.Nodes, s.NodesReady = r.scenario.Nodes.Count, n.Ready
	}
	w := r.workload.Live()
	s.PodsWanted, s.PodsReady = w.PodsWanted, w.PodsReady
	return s
}
