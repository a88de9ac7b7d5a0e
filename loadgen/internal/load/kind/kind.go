// Package kind creates the loads of a scenario. It knows all kinds of loads.
package kind

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/batch"
	"github.com/stormglass/stormglass/loadgen/internal/load/history"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/load/podstream"
	"github.com/stormglass/stormglass/loadgen/internal/load/replay"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type maker func(*making, plan.Load) (load.Load, error)

// makers returns the functions that create loads, by kind of load.
func makers() map[string]maker {
	return map[string]maker{
		"requests": paced(newRequests),
		"watches":  paced(newWatches),
		"changes":  paced(newChanges),
		"history":  newHistory,
		"streams":  paced(newStreams),
		"replay":   newReplay,
		"custom":   paced(newCustom),
		"objects":  paced(newObjects),
	}
}

// paced returns a maker that creates the pacer for the load's arrivals and passes it to f.
func paced(f func(*making, plan.Load, arrival.Pacer) (load.Load, error)) maker {
	return func(m *making, at plan.Load) (load.Load, error) {
		p, err := arrival.NewShaped(at.Arrival, float64(at.Rate), at.Shape.Pace(), m.target.Seed)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", at.Name, err)
		}
		return f(m, at, p)
	}
}

type making struct {
	plan   *plan.Plan
	target load.Target
	dir    string
	made   map[string]load.Load // the loads made so far, by name
}

// Make builds the loads of a plan, in the order of Plan.Loads. They send no requests yet. dir is the directory
// for the evidence of violations in histories. Errors begin with the load's path in the scenario file.
func Make(p *plan.Plan, target load.Target, dir string) ([]load.Load, error) {
	return MakeSome(p, target, dir, func(string) bool { return true })
}

// MakeSome is like Make, but builds a load only if the function `some` returns true for its kind. The entries of the
// other loads are nil.
func MakeSome(p *plan.Plan, target load.Target, dir string, some func(kind string) bool) ([]load.Load, error) {
	m := &making{plan: p, target: target, dir: dir, made: map[string]load.Load{}}
	all := make([]load.Load, len(p.Loads))
	// First build the loads that refer to no other load, then those that do. Their order in the file does not matter.
	for _, naming := range []bool{false, true} {
		for i, at := range p.Loads {
			if (at.Watches != "") != naming || !some(at.Kind) {
				continue
			}
			l, err := makers()[at.Kind](m, shared(at, target.Share))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at.Path, err)
			}
			all[i], m.made[at.Name] = l, l
		}
	}
	return all, nil
}

func newRequests(m *making, at plan.Load, pacer arrival.Pacer) (load.Load, error) {
	op, err := object.NewOperation(m.target, *at.Load)
	if err != nil {
		return nil, err
	}
	return request.New(m.target, *at.Load, op, pacer)
}

func newObjects(m *making, at plan.Load, pacer arrival.Pacer) (load.Load, error) {
	all, err := m.plan.Expand(scenario.PlacedBatch{Batch: at.Batch(), Name: at.Name, Path: at.Path})
	if err != nil {
		return nil, err
	}
	return batch.New(m.target, *at.Load, all, pacer)
}

func newWatches(m *making, at plan.Load, pacer arrival.Pacer) (load.Load, error) {
	objects, err := object.NewSet(m.target, *at.Load)
	if err != nil {
		return nil, err
	}
	return watch.New(m.target, *at.Load, pacer, objects)
}

func newCustom(m *making, at plan.Load, pacer arrival.Pacer) (load.Load, error) {
	return request.NewCalls(m.target, *at.Load, m.target.Callers[at.Name], pacer)
}

func newReplay(m *making, at plan.Load) (load.Load, error) {
	return replay.New(m.target, *at.Load)
}

// streams is a load that opens streams to pods. While it runs, it watches which pods are running.
type streams struct {
	*request.Calls
	caller    *podstream.Caller
	namespace string
}

func newStreams(m *making, at plan.Load, pacer arrival.Pacer) (load.Load, error) {
	caller := podstream.New(m.target, *at.Load)
	calls, err := request.NewCalls(m.target, *at.Load, caller, pacer)
	return &streams{calls, caller, m.target.Namespace}, err
}

func (p *streams) Run(ctx context.Context) error {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() { p.caller.Watch(watching, p.namespace) })
	return p.Calls.Run(ctx)
}

func newHistory(m *making, at plan.Load) (load.Load, error) {
	return history.New(m.target, history.Config{
		Name: at.Name, Clients: at.Clients, Registers: at.Objects, Rate: float64(at.Rate), Watchers: at.Watchers,
		Length: at.Fixed, Dir: m.dir,
	})
}

// drainTimeout is how long Settle waits without an event before it counts missing deliveries as lost.
const drainTimeout = 10 * time.Second

// changes is a load of kind "changes", which writes to the objects that a load of kind "watches" watches.
type changes struct {
	*request.Requests
	writes  *watch.Changes
	watches *watch.Watches
}

func newChanges(m *making, at plan.Load, pacer arrival.Pacer) (load.Load, error) {
	watches, _ := m.made[at.Watches].(*watch.Watches)
	writes, err := watch.NewChanges(m.target, *at.Load, watches)
	if err != nil {
		return nil, err
	}
	requests, err := request.New(m.target, *at.Load, writes, pacer)
	return &changes{requests, writes, watches}, err
}

// Settle waits until the watches have delivered the writes. The results of the watches contain the lost deliveries.
func (c *changes) Settle(ctx context.Context) { _, _ = c.watches.Drain(ctx, drainTimeout) }

// Parts returns this worker's results by phase.
func (c *changes) Parts() []load.Part {
	all := c.Requests.Parts()
	for i := range all {
		all[i].Acknowledged = c.writes.Acknowledged()[all[i].Phase]
	}
	return all
}

// Learn records that a write of another worker was acknowledged.
func (c *changes) Learn(a load.Ack) { c.writes.Learn(a) }

// AddTo adds the results of the requests and the number of acknowledged writes to the phases of m.
func (c *changes) AddTo(m *result.Measurements) {
	load.AddToPhases(m, c.Results(), func(p *result.Phase, all []result.Requests) {
		for _, seen := range all {
			p.Changes = append(p.Changes, result.Changes{Requests: seen, Acknowledged: c.writes.Acknowledged()[p.Name]})
		}
	})
}
