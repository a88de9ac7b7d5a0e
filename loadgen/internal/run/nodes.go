package run

import (
	"context"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// nodes manages the simulated nodes of a run. If the scenario has no nodes, its methods do nothing.
type nodes struct {
	spec  scenario.Nodes
	fleet nodeFleet // the simulated nodes; nil if the scenario has none
	// stalled is how long the generator process itself was stalled while the nodes registered.
	stalled time.Duration
}

// nodeFleet is the set of simulated nodes, in this process or divided among workers.
type nodeFleet interface {
	// Start starts the nodes. It returns when the API server has acknowledged all of them as Ready.
	Start(ctx context.Context) error
	// Begin begins a fault and returns the names of the affected nodes.
	Begin(f node.Fault) ([]string, error)
	// Names returns the names of all present nodes.
	Names() []string
	Live() node.Live
	Results() result.Nodes
	// Stop stops the nodes and waits until they have ended, or until ctx ends.
	Stop(ctx context.Context)
}

// newNodes creates the nodes in this process or, if divided is not nil, in its workers.
func newNodes(c node.Config, divided *workers.Fleet) (n *nodes, err error) {
	n = &nodes{spec: c.Spec}
	switch {
	case c.Spec.Count == 0:
	case divided != nil:
		n.fleet, err = divided.DivideNodes(c)
	default:
		n.fleet, err = node.New(c)
	}
	return n, exitcode.EnvironmentError(err)
}

// nodeWorkers returns the workers among which the scenario's nodes are divided. It returns nil if this process simulates
// the nodes.
func (s *site) nodeWorkers() *workers.Fleet {
	if s.fleet == nil {
		return nil
	}
	if why := workers.WholeNodes(s.plan); why != "" {
		s.step("the coordinator simulates the nodes: %s", why)
		return nil
	}
	return s.fleet
}

// nodeConfig returns the configuration of the nodes. Nodes that are divided among workers do not serve a kubelet API.
func nodeConfig(ctx context.Context, t *target, s *plan.Plan, c console, divided bool) node.Config {
	var api *node.API
	if s.Nodes.Count > 0 && !divided {
		var err error
		if api, err = t.KubeletAPI(ctx); err != nil {
			c.step("the simulated nodes cannot serve a kubelet API: %v", err)
		}
	}
	config := node.Config{
		API:  api,
		Spec: s.Nodes, Release: s.NodesRelease(), Labels: t.Labels, Taints: t.Taints(), Label: t.LabelNode,
		NamePrefix: t.NodePrefix(), Seed: s.Seed, Log: c.step,
	}
	config.Identities, config.Restricted = t.Identities(s.Nodes)
	if t.cloud != nil {
		config.Cloud = t.cloud
	}
	return config
}

// registerMargin is how long nodes may take to become Ready, in addition to the time over which their registration is
// spread. A working cluster needs far less. Without a limit, a run might wait forever and leave no report.
const registerMargin = 10 * time.Minute

func registerWithin(n scenario.Nodes) time.Duration {
	return registerMargin + time.Duration(float64(n.Count)/float64(n.RegisterRate)*float64(time.Second))
}

// register registers the nodes. It returns when the API server has acknowledged that every node is Ready, and the
// workload's watch shows every node as Ready.
func (n *nodes) register(ctx context.Context, limit time.Duration, j journal, w *workload.Workload, stalls *stall.Meter) error {
	if n.fleet == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out after %s", limit))
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
		return exitcode.Environmentf("not all %d nodes became Ready: %w", count, causeOf(ctx, err))
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
		seen.ReadyStalledSeconds = max(seen.ReadyStalledSeconds, n.stalled.Seconds())
		m.Nodes = &seen
	}
}

// beginFault begins a fault of nodes and returns the names of the affected nodes.
func (n *nodes) beginFault(f *scenario.Fault, j journal, w *workload.Workload) ([]string, error) {
	at := time.Now()
	names, err := n.fleet.Begin(node.Fault{Kind: f.Kind, Fraction: f.Fraction, Delay: f.Delay.D()})
	if err != nil {
		return nil, err
	}
	if f.Kind == control.NodeRecovery {
		w.NodesRecovered()
		j.event(at, result.EventNodeFault, f.Kind, "all failed nodes come back")
		j.step("all failed nodes come back")
		return nil, nil
	}
	if f.StopsNodes() {
		w.NodesFailed(at, names)
	}
	detail := fmt.Sprintf("%d of %d nodes %s", len(names), n.spec.Count, faultText(f))
	j.event(at, result.EventNodeFault, f.Kind, detail)
	j.step("fault: %s", detail)
	return names, nil
}

func faultText(f *scenario.Fault) string {
	switch f.Kind {
	case control.InstancesVanish:
		return "vanish together with their instances"
	case control.NodeScaleUp:
		return "are added"
	case control.NodeShutdown:
		return "shut down gracefully"
	case control.SlowKubelet:
		return "delay their writes by " + f.Delay.String()
	case control.KubeletUnreachable:
		return "cannot be reached by the API server"
	}
	return "stop"
}
