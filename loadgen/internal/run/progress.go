package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
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
	// Phase by its name; empty before the first, scenario.Teardown while its actions go on after the last, then Ending.
	Phase string
	// Elapsed in the phase; Length of it, or its `within`; 0: it is not known.
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

// Ending is the phase of a Snapshot while loads and nodes end, and what the run made is removed.
const Ending = "ending"

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

// beginStage shows what comes after the phases as a phase of no known length.
func (d *display) beginStage(name string) { d.beginPhase(&scenario.Phase{Name: name}, time.Now()) }

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
		s.Phase, s.Until, s.Elapsed, s.Length = p.Name, p.Until.String(), now.Sub(start), p.For.D()
		if !p.Until.IsZero() {
			s.Length = p.Within.D()
		}
	}
	d.loads.snapshot(&s)
	s.Nodes, s.NodesReady = d.nodes.live()
	w := d.workload.Live()
	s.PodsWanted, s.PodsReady = w.PodsWanted, w.PodsReady
	return s
}

// console shows steps to the user and knows whether they still wait for the end.
type console struct {
	Progress
	hurry <-chan struct{} // closed when the user no longer waits; nil: they always do
}

func (c console) step(format string, args ...any) { c.Step(fmt.Sprintf(format, args...)) }

func (c console) waiting(what string) (done func()) { return cluster.Waiting(c.Step, what) }

func (c console) hurried() bool {
	select {
	case <-c.hurry:
		return true
	default:
		return false
	}
}

// patient returns a context that ends when the user no longer waits.
func (c console) patient() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-c.hurry:
			cancel()
		case <-ctx.Done():
		}
	}()
	if c.hurried() {
		cancel()
	}
	return ctx, cancel
}

// windUp returns a context for work after the phases or after an interrupt. It ends
// after limit, or when the user no longer waits.
func (c console) windUp(limit time.Duration) (context.Context, context.CancelFunc) {
	patient, stop := c.patient()
	ctx, cancel := context.WithTimeout(patient, limit)
	return ctx, func() {
		cancel()
		stop()
	}
}

// announceSignals prints the effect of the first signal, which ends ctx, and of the
// second. Call stop when the run is over.
func (c console) announceSignals(ctx context.Context, inUserCluster bool) (stop func()) {
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		removes := ""
		if inUserCluster {
			removes = " and removing what was made in your cluster"
		}
		c.step("interrupted: ending in order%s; a second signal skips what that waits for", removes)
		select {
		case <-c.hurry:
			c.step("second signal: nothing is waited for any more")
		case <-over:
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}
