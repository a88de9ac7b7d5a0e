package node

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Part controls the nodes of a run that one process simulates (a Fleet with Config.Part). Its methods may be called
// concurrently.
type Part interface {
	// Start registers the nodes of the part, as Fleet.Start does.
	Start(ctx context.Context) error
	// Able and Hit act as Fleet.Able and Fleet.Hit do.
	Able(kind string) ([]int, error)
	Hit(fault Fault, numbers []int) error
	// Live and Tally return the state and the results that the part reported last.
	Live() Live
	Tally() Tally
	// Stop ends the nodes of the part.
	Stop(ctx context.Context)
}

// Tally holds the results of the nodes in one process. The Tallies of several processes can be added up.
type Tally struct {
	// Sums holds all results except Heartbeat. Sums.Count is the number of nodes in the process.
	Sums result.Nodes `json:"sums"`
	// Heartbeat counts the Lease renewals by latency.
	Heartbeat latency.Counts `json:"heartbeat"`
}

// Divided is a set of simulated nodes that several processes share: with n parts, part k simulates the nodes whose
// number modulo n is k. Together the parts act as one Fleet with the same Config: the node names and random choices are
// the same, and faults hit the same nodes. The methods of a Divided may be called concurrently, but Start only once.
type Divided struct {
	chooser *chooser
}

// Divide checks the configuration and combines parts into one Divided. The Divided launches and terminates the
// instances in cfg.Cloud. The parts send all other requests.
func Divide(cfg Config, parts []Part) (*Divided, error) {
	p, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	return &Divided{newChooser(p, parts, func(i int) netip.Addr { return hostIP(i) })}, nil
}

// Start registers the nodes of all parts, like Fleet.Start. If one part fails, Start cancels the other parts.
func (d *Divided) Start(ctx context.Context) error {
	if err := d.chooser.launch(0, d.chooser.plan.early()); err != nil {
		return err
	}
	all, starting := errgroup.WithContext(ctx)
	for _, p := range d.chooser.parts {
		all.Go(func() error { return p.Start(starting) })
	}
	err := all.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("%d of %d nodes are Ready: %w", d.Live().Registered, d.chooser.plan.early(), context.Cause(ctx))
	}
	return err
}

// Begin is like Fleet.Begin.
func (d *Divided) Begin(fault Fault) ([]string, error) { return d.chooser.begin(fault) }

// Names returns the names of all nodes in order. It leaves out the nodes that no NodeScaleUp has added yet.
func (d *Divided) Names() []string {
	d.chooser.mu.Lock()
	defer d.chooser.mu.Unlock()
	return d.chooser.names(0, d.chooser.count())
}

// Live returns the sum of the states that the parts last reported.
func (d *Divided) Live() (sum Live) {
	for _, p := range d.chooser.parts {
		l := p.Live()
		sum.Count += l.Count
		sum.Registered += l.Registered
		sum.Ready += l.Ready
		sum.Failed += l.Failed
		sum.Slow += l.Slow
		sum.PodsRunning += l.PodsRunning
		sum.Watches += l.Watches
		sum.Heartbeats += l.Heartbeats
		sum.Missed += l.Missed
	}
	return sum
}

// Results returns the nodes' results so far. ReadySeconds is the time of the slowest part, or 0 until the nodes of all
// parts are Ready. Watches is the sum of the parts' peak numbers of watches.
func (d *Divided) Results() result.Nodes {
	sum := result.Nodes{Count: d.chooser.plan.Spec.Count, Fidelity: d.chooser.plan.Spec.Fidelity}
	var renewals []latency.Counts
	ready := true
	for i, p := range d.chooser.parts {
		t := p.Tally()
		own := load.Share{Index: i, Of: len(d.chooser.parts)}.Part(sum.Count)
		ready = ready && (own == 0 || t.Sums.ReadySeconds > 0)
		renewals = append(renewals, t.Heartbeat)
		s := t.Sums
		sum.ReadySeconds = max(sum.ReadySeconds, s.ReadySeconds)
		sum.ReadyStalledSeconds = max(sum.ReadyStalledSeconds, s.ReadyStalledSeconds)
		sum.Heartbeats += s.Heartbeats
		sum.MissedByGenerator += s.MissedByGenerator
		sum.MissedByServer += s.MissedByServer
		sum.Delayed += s.Delayed
		sum.StatusWrites += s.StatusWrites
		sum.PodsStarted += s.PodsStarted
		sum.PodsStopped += s.PodsStopped
		sum.Watches += s.Watches
		sum.Reconnects += s.Reconnects
		sum.Relists += s.Relists
		sum.Errors = addCounts(sum.Errors, s.Errors)
		for life, events := range s.PodLives {
			if sum.PodLives == nil {
				sum.PodLives = map[string]map[string]int64{}
			}
			sum.PodLives[life] = addCounts(sum.PodLives[life], events)
		}
	}
	if !ready {
		sum.ReadySeconds = 0
	}
	if h, err := latency.Merged(renewals...); err == nil { // no error: all histograms have the same range
		sum.Heartbeat = h.Latency()
	}
	return sum
}

// Stop ends the nodes of all parts. It returns when they have ended, or when ctx ends.
func (d *Divided) Stop(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range d.chooser.parts {
		all.Go(func() { p.Stop(ctx) })
	}
	all.Wait()
}

func addCounts(sum, more map[string]int64) map[string]int64 {
	if sum == nil {
		return maps.Clone(more)
	}
	for k, n := range more {
		sum[k] += n
	}
	return sum
}
