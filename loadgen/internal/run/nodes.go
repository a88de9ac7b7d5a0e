package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Nodes runs the simulated nodes of a scenario alone until ctx ends, and
// tells what they did. Nothing is recorded and nothing judged.
func Nodes(ctx context.Context, o Options) (result.Nodes, error) {
	if o.Scenario.Nodes.Count == 0 {
		return result.Nodes{}, exitcode.Usagef("nodes.count: no nodes to run (write --count 100)")
	}
	if err := CheckDescriptors(o.Scenario); err != nil {
		return result.Nodes{}, err
	}
	r := &run{Options: o, scenario: o.Scenario, registry: prometheus.NewRegistry(), nodesAlone: true}
	defer r.announceSignals(ctx)()
	err := r.standAloneNodes(ctx)
	r.release()
	if r.isLost() {
		r.step("failed: %v", err)
	}
	var seen result.Nodes
	if r.fleet != nil {
		windUp, cancel := r.windUp(windUpTimeout)
		defer cancel()
		r.fleet.Stop(windUp)
		seen = r.fleet.Results()
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // Ctrl-C is how this ends
	}
	err = errors.Join(err, r.discard(err))
	if r.scratch != nil {
		err = errors.Join(err, r.scratch.Remove())
	}
	return seen, err
}

func (r *run) standAloneNodes(ctx context.Context) error {
	id, err := rundir.NewID()
	if err != nil {
		return err
	}
	r.info.ID = id
	r.sweep()
	if r.Kubeconfig != "" {
		if err := r.prepareCluster(ctx); err != nil {
			return err
		}
	} else {
		if r.scratch, err = cluster.NodesScratch(); err != nil {
			return exitcode.Environmentf("make a directory for the control plane: %w", err)
		}
		r.dir = r.scratch.Path
		if err := r.preparePlane(ctx); err != nil {
			return err
		}
		r.step("kubeconfig: %s", r.plane.Cluster().Kubeconfigs["admin"])
	}
	watched := r.watch(ctx)
	r.touched = true
	if err := r.target.Setup(watched); err != nil {
		return r.firstCause(ctx, r.ended(watched, exitcode.Environmentf("%w", err)))
	}
	if err := r.makeFleet(); err != nil {
		return err
	}
	began := time.Now()
	done := r.waiting(fmt.Sprintf("%d nodes to be Ready", r.scenario.Nodes.Count))
	err = r.fleet.Start(watched)
	done()
	if err != nil {
		return r.firstCause(ctx, r.ended(watched, exitcode.Environmentf("%w", err)))
	}
	r.step("%d nodes Ready after %s; Ctrl-C ends them", r.scenario.Nodes.Count, time.Since(began).Round(time.Millisecond))
	if len(r.target.Taints()) > 0 {
		r.step("they are tainted; a pod with this in its spec is scheduled to them:")
		for _, line := range r.target.Placement() {
			r.step("  %s", line)
		}
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-watched.Done():
			return context.Cause(watched)
		case <-tick.C:
			n := r.fleet.Live()
			r.Progress.Live(Snapshot{Phase: "nodes", Elapsed: time.Since(began), Nodes: r.scenario.Nodes.Count, NodesReady: n.Ready})
		}
	}
}
