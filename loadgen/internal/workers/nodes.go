package workers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/node"
)

// Nodes represents, in the coordinator, the simulated nodes of a run. The workers divide these nodes.
type Nodes struct {
	*node.Divided
	fleet *Fleet
}

// nodesSetup holds settings of the simulated nodes that are not in the scenario.
type nodesSetup struct {
	Prefix     string            `json:"prefix"`
	Labels     map[string]string `json:"labels,omitempty"`
	Taints     []corev1.Taint    `json:"taints,omitempty"`
	Restricted bool              `json:"restricted,omitempty"`
	Cloud      bool              `json:"cloud,omitempty"` // whether the coordinator reports instances of nodes to a simulated cloud
}

// DivideNodes divides the nodes of c among the workers. Call it before Join. The workers export the nodes' metrics. The
// coordinator provides the nodes' credentials, and reports their instances to the simulated cloud.
func (f *Fleet) DivideNodes(c node.Config) (*Nodes, error) {
	var parts []node.Part
	for index := range f.options.Count {
		parts = append(parts, nodesPart{f, index})
	}
	divided, err := node.Divide(c, parts)
	if err != nil {
		return nil, err
	}
	f.nodes = &c
	return &Nodes{divided, f}, nil
}

func (f *Fleet) nodesSetup() *nodesSetup {
	if f.nodes == nil {
		return nil
	}
	c := f.nodes
	return &nodesSetup{Prefix: c.NamePrefix, Labels: c.Labels, Taints: c.Taints, Restricted: c.Restricted, Cloud: c.Cloud != nil}
}

// Start registers the nodes. All workers start at the same time.
func (n *Nodes) Start(ctx context.Context) error {
	return n.Divided.Start(load.StartAt(ctx, n.fleet.startTime()))
}

// nodesPart represents the nodes that one worker runs. Call its methods only after the worker has joined.
type nodesPart struct {
	fleet *Fleet
	index int
}

var _ node.Part = nodesPart{}

func (p nodesPart) member() *member { return p.fleet.members[p.index] }

// Start makes the worker register its nodes. It returns when the nodes are Ready.
func (p nodesPart) Start(ctx context.Context) error {
	m := p.member()
	answer, err := m.call(ctx, call{Verb: verbNodesStart, At: load.StartOf(ctx)})
	if answer.Late {
		m.late(answer)
		err = m.whyGone()
	}
	return err
}

// Able returns the numbers that identify the worker's nodes that a fault of the given kind can affect.
func (p nodesPart) Able(kind string) ([]int, error) {
	answer, err := p.ask(call{Verb: verbNodesAble, Fault: &node.Fault{Kind: kind}})
	return answer.Numbers, err
}

// Hit begins a fault on the worker's nodes that `numbers` identifies.
func (p nodesPart) Hit(fault node.Fault, numbers []int) error {
	_, err := p.ask(call{Verb: verbNodesHit, Fault: &fault, Numbers: numbers})
	return err
}

// ask sends a call that the worker answers immediately. If the worker is lost or does not answer, the run fails.
func (p nodesPart) ask(c call) (reply, error) {
	ctx, cancel := p.member().bounded()
	defer cancel()
	answer, err := p.member().call(ctx, c)
	if errors.As(err, new(*LostError)) {
		p.fleet.fail(err)
	}
	return answer, err
}

// Live returns the state of the worker's nodes, as the worker last reported it.
func (p nodesPart) Live() node.Live {
	m := p.member()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nodes
}

// Tally returns the results of the worker's nodes, as the worker last reported them.
func (p nodesPart) Tally() node.Tally {
	m := p.member()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.results.Nodes == nil {
		return node.Tally{}
	}
	return *m.results.Nodes
}

// Stop stops the worker's nodes. It returns when they have stopped or the worker is lost.
func (p nodesPart) Stop(ctx context.Context) {
	_, _ = p.member().call(ctx, call{Verb: verbNodesStop}) // a lost worker has no nodes any more
}

// late marks the worker as lost because a start time arrived too late. answer is the worker's reply with the details.
func (m *member) late(answer reply) {
	m.lose(fmt.Sprintf("was late: %s (is its machine overloaded? is the network slow?)", answer.Error))
}

// checkTally returns an error if the reported durations of Lease renewals are not valid histogram counts.
func (r *results) checkTally() error {
	if r == nil || r.Nodes == nil {
		return nil
	}
	_, err := latency.Merged(r.Nodes.Heartbeat)
	return err
}
