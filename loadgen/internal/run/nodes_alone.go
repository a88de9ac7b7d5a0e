package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Nodes runs only the simulated nodes of a scenario until ctx ends, and returns their results. It does not record metrics
// and judges nothing.
func Nodes(ctx context.Context, o Options) (seen result.Nodes, err error) {
	if err := o.checkTarget(); err != nil {
		return seen, err
	}
	if o.Scenario.Nodes.Count == 0 {
		return seen, exitcode.Usagef("nodes.count: no nodes to run (write --count 100)")
	}
	p := compiled{o: o, plan: plan.Of(o.Scenario)}
	if err := p.plan.Check(); err != nil {
		return seen, exitcode.UsageError(err)
	}
	if err := CheckDescriptors(p.plan, false); err != nil {
		return seen, err
	}
	c := console{o.Progress, o.Hurry}
	defer c.announceSignals(ctx, o.Kubeconfig.Files != "")()
	id, err := rundir.NewID()
	if err != nil {
		return seen, err
	}
	c.sweep("")
	var started undo
	t, err := nodesTarget(ctx, p, id, c, &started)
	if err == nil {
		seen, err = runNodes(ctx, t, p.plan, c, &started)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // Ctrl-C ends this command normally
	}
	return seen, errors.Join(err, started.undo(err))
}

// nodesTarget returns the target that the options name, or a control plane that it starts in a temporary directory.
func nodesTarget(ctx context.Context, p compiled, id string, c console, started *undo) (*target, error) {
	o := p.o
	if o.Kubeconfig.Files != "" {
		t, _, err := askForCluster(ctx, p, id, c)
		return t, err
	}
	if o.Plane != "" {
		t, err := sharedTarget(ctx, o, p.plan, id, c)
		if err == nil {
			t.NodesAlone = true
		}
		return t, err
	}
	temp, err := scratch.New(scratch.Nodes)
	if err != nil {
		return nil, exitcode.Environmentf("create a directory for the control plane: %w", err)
	}
	started.add(temp.Remove)
	t, plane, err := bundledTarget(ctx, o, p.plan, filepath.Join(temp.Path, planeDir), id, nil, c, started)
	if err != nil {
		return nil, err
	}
	t.NodesAlone = true
	c.step("kubeconfig: %s", plane.Cluster().Kubeconfigs["admin"])
	return t, nil
}

// runNodes registers the nodes and shows them until ctx ends or the target is lost.
func runNodes(ctx context.Context, t *target, s *plan.Plan, c console, started *undo) (seen result.Nodes, err error) {
	watched := t.watch(ctx)
	defer t.unwatch()
	if _, err := t.setup(watched, c, "", started); err != nil {
		return seen, t.firstCause(ctx, causeOf(watched, err))
	}
	n, err := newNodes(nodeConfig(watched, t, s, c, false), nil)
	if err != nil {
		return seen, err
	}
	err = t.firstCause(ctx, n.show(watched, t, c))
	t.unwatch()
	if t.isLost() {
		c.step("failed: %v", err)
	}
	ended, cancel := c.windUp(windUpTimeout)
	defer cancel()
	n.stop(ended)
	return n.fleet.Results(), err
}

// show starts the nodes. Then it shows once a second how many are Ready, until ctx ends. It returns the cause of ctx.
func (n *nodes) show(ctx context.Context, t *target, c console) error {
	began := time.Now()
	done := c.waiting(fmt.Sprintf("%d nodes to be Ready", n.spec.Count))
	err := n.fleet.Start(ctx)
	done()
	if err != nil {
		return causeOf(ctx, exitcode.EnvironmentError(err))
	}
	c.step("%d nodes Ready after %s; Ctrl-C removes them", n.spec.Count, time.Since(began).Round(time.Millisecond))
	if len(t.Taints()) > 0 {
		c.step("the nodes are tainted, so a pod is scheduled to them only if its spec contains:")
		for _, line := range t.Placement() {
			c.step("  %s", line)
		}
	}
	if class := t.DeviceClass(); class != "" {
		c.step("to claim devices of these nodes, set deviceClassName: %s", class)
	}
	every(ctx, time.Second, func() bool {
		count, ready := n.live()
		c.Live(Snapshot{Phase: "nodes", Elapsed: time.Since(began), Nodes: count, NodesReady: ready})
		return true
	})
	return context.Cause(ctx)
}
