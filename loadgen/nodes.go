package loadgen

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Nodes runs the simulated nodes of a scenario alone until ctx ends, and
// tells what they did. Nothing is recorded and nothing judged.
func Nodes(ctx context.Context, o Options) (result.Nodes, error) {
	if o.Scenario.Nodes.Count == 0 {
		return result.Nodes{}, usagef("nodes.count: no nodes to run (write --count 100)")
	}
	if err := checkDescriptors(o.Scenario); err != nil {
		return result.Nodes{}, err
	}
	r := &run{Options: o, scenario: o.Scenario, registry: prometheus.NewRegistry()}
	err := r.standAloneNodes(ctx)
	var seen result.Nodes
	if r.fleet != nil {
		r.fleet.Stop(context.WithoutCancel(ctx))
		seen = r.fleet.Results()
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // Ctrl-C is how this ends
	}
	return seen, errors.Join(err, r.discard(err))
}

func (r *run) standAloneNodes(ctx context.Context) error {
	id, err := newRunID()
	if err != nil {
		return err
	}
	r.info.ID = id
	if r.Kubeconfig != "" {
		if err := r.prepareCluster(ctx); err != nil {
			return err
		}
	} else {
		if r.dir, err = os.MkdirTemp("", "stormglass-nodes-"); err != nil {
			return environmentf("make a directory for the control plane: %w", err)
		}
		r.made = []string{r.dir}
		if err := r.preparePlane(ctx); err != nil {
			return err
		}
		r.step("kubeconfig: %s", r.plane.Cluster().Kubeconfigs["admin"])
	}
	r.touched = true
	if err := r.target.Setup(ctx); err != nil {
		return environmentf("%w", err)
	}
	if err := r.makeFleet(); err != nil {
		return err
	}
	began := time.Now()
	if err := r.fleet.Start(ctx); err != nil {
		return r.ended(ctx, environmentf("%w", err))
	}
	r.step("%d nodes Ready after %s; Ctrl-C ends them", r.scenario.Nodes.Count, time.Since(began).Round(time.Millisecond))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-planeDone(r.plane):
			return environmentf("%w: %w", errPlaneEnded, planeEnded(r.plane))
		case <-tick.C:
			n := r.fleet.Live()
			r.Progress.Live(Snapshot{Phase: "nodes", Elapsed: time.Since(began), Nodes: r.scenario.Nodes.Count, NodesReady: n.Ready})
		}
	}
}

// planeDone is closed when the bundled plane has ended; never for a user's
// cluster.
func planeDone(p *control.Supervisor) <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.Done()
}

// planeEnded says why a plane that is Done ended: nobody here asked it to.
func planeEnded(p *control.Supervisor) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New("somebody else stopped it")
}
