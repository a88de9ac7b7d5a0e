package run

import (
	"context"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// nodes are the simulated nodes of a run. Without any their methods do nothing.
type nodes struct {
	spec  scenario.Nodes
	fleet *node.Fleet // nil: the scenario has no nodes
	// stalled is for how long the generator was stalled while they registered.
	stalled time.Duration
}

func newNodes(c node.Config) (*nodes, error) {
	n := &nodes{spec: c.Spec}
	if c.Spec.Count == 0 {
		return n, nil
	}
	var err error
	n.fleet, err = node.New(c)
	return n, exitcode.EnvironmentError(err)
}

func nodeConfig(ctx context.Context, t *target, s *scenario.Scenario, c console) node.Config {
	var api *node.API
	if s.Nodes.Count > 0 {
		var err error
		if api, err = t.KubeletAPI(ctx); err != nil {
			c.step("the nodes serve no kubelet API: %v", err)
		}
	}
	config := node.Config{
		API:  api,
		Spec: s.Nodes, Release: s.NodesRelease(), Labels: t.Labels, Taints: t.Taints(),
		NamePrefix: t.NodePrefix(), Seed: s.Seed, Log: c.step,
	}
	config.Identities, config.Restricted = t.Identities(s.Nodes)
	if t.cloud != nil {
		config.Cloud = t.cloud
	}
	return config
}

// registerMargin bounds the time until the nodes are Ready, beyond the time that
// their registration is spread over. It is far more than a cluster that works needs:
// a run that waits for ever leaves no report.
const registerMargin = 10 * time.Minute

func registerWithin(n scenario.Nodes) time.Duration {
	return registerMargin + time.Duration(float64(n.Count)/float64(n.RegisterRate)*float64(time.Second))
}

// register returns when the API server has acknowledged every node as Ready and the
// workload has seen it.
func (n *nodes) register(ctx context.Context, limit time.Duration, j journal, w *workload.Workload, stalls *stall.Meter) error {
	if n.fleet == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the others were not within %s", limit))
	defer cancel()
	count := len(n.fleet.Names())
	j.step("registering %d nodes, fidelity %s", count, n.spec.Fidelity)
	j.event(time.Now(), result.EventNote, "register nodes", fmt.Sprint(count))
	stalled := stalls.Total(time.Now())
	defer func() { n.stalled = stalls.Total(time.Now()) - stalled }()
	if err := n.fleet.Start(ctx); err != nil {
		return exitcode.EnvironmentError(err)
	}
	if err := w.Wait(ctx, func() bool { return w.NodesReady(n.fleet.Names()) }); err != nil {
		return exitcode.Environmentf("not all of %d nodes were seen Ready: %w", count, causeOf(ctx, err))
	}
	j.event(time.Now(), result.EventNote, "nodes ready", fmt.Sprint(count))
	j.step("%d nodes Ready", count)
	return nil
}

func (n *nodes) stop(ctx context.Context) {
	if n.fleet != nil {
		n.fleet.Stop(ctx)
	}
}

func (n *nodes) live() (count, ready int) {
	if n.fleet == nil {
		return 0, 0
	}
	return len(n.fleet.Names()), n.fleet.Live().Ready
}

func (n *nodes) addTo(m *result.Measurements) {
	if n.fleet != nil {
		seen := n.fleet.Results()
		seen.ReadyStalledSeconds = n.stalled.Seconds()
		m.Nodes = &seen
	}
}

// beginFault begins a fault and returns the names of the nodes that are hit.
func (n *nodes) beginFault(f *scenario.Fault, j journal, w *workload.Workload) (names []string, err error) {
	at := time.Now()
	var does string
	switch f.Kind {
	case control.InstancesVanish:
		names, err = n.fleet.Vanish(f.Fraction)
		does = "vanish, and their instances"
	case control.NodeScaleUp:
		names, err = n.fleet.Join()
		does = "are added"
	case control.NodeFailure:
		names, does = n.fleet.Fail(f.Fraction), "stop"
	case control.NodeShutdown:
		names, does = n.fleet.Shutdown(f.Fraction), "shut down in order"
	case control.SlowKubelet:
		names, does = n.fleet.Slow(f.Fraction, f.Delay.D()), "write late by "+f.Delay.String()
	case control.KubeletUnreachable:
		names, does = n.fleet.Isolate(f.Fraction), "are not reached by the API server"
	case control.NodeRecovery:
		if err := n.fleet.Recover(); err != nil {
			return nil, err
		}
		w.NodesRecovered()
		j.event(at, result.EventNodeFault, f.Kind, "all nodes come back")
		j.step("all nodes come back")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f.StopsNodes() {
		w.NodesFailed(at, names)
	}
	detail := fmt.Sprintf("%d of %d nodes %s", len(names), n.spec.Count, does)
	j.event(at, result.EventNodeFault, f.Kind, detail)
	j.step("fault: %s", detail)
	return names, nil
}
