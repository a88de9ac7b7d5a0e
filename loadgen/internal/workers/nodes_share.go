package workers

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// nodesShare holds the simulated nodes that one worker runs. A nil *nodesShare means no nodes; its methods do nothing.
type nodesShare struct {
	fleet *node.Fleet
	asked *askedIdentities // nil if the nodes share the load's credentials

	mu       sync.Mutex
	cancel   context.CancelFunc // cancels the start of the nodes
	starting sync.WaitGroup
	stalled  time.Duration // total time for which this process was stalled while the nodes registered
	over     bool
}

// newNodes creates the nodes that the worker runs. It sends no requests.
func (s *session) newNodes(in welcome, told *scenario.Scenario, config *rest.Config) (*nodesShare, error) {
	own := in.Share.Part(told.Nodes.Count)
	if in.Nodes == nil || own == 0 {
		return nil, nil
	}
	if err := checkDescriptors(told.Nodes, own); err != nil {
		return nil, err
	}
	n := &nodesShare{}
	c := node.Config{
		Spec: told.Nodes, Release: told.NodesRelease(), Restricted: in.Nodes.Restricted, Labels: in.Nodes.Labels, Taints: in.Nodes.Taints,
		NamePrefix: in.Nodes.Prefix, Seed: told.Seed, Registerer: s.registry, Samples: s.samples, Part: in.Share, Log: s.tell,
	}
	if in.Nodes.Cloud {
		c.Cloud = coordinatorsCloud{}
	}
	if told.Nodes.Fidelity == node.Shared {
		c.Identities = node.NewShared(config)
	} else {
		n.asked = newAskedIdentities(s.link.send, config)
		c.Identities = n.asked
	}
	var err error
	n.fleet, err = node.New(c)
	return n, err
}

// coordinatorsCloud is a Cloud that ignores changes of instances, because the coordinator reports these to the cloud.
type coordinatorsCloud struct{}

func (coordinatorsCloud) ChangeInstances(context.Context, control.Instances) error { return nil }

// spareDescriptors is the number of file descriptors that a worker needs in addition to the connections of its nodes.
const spareDescriptors = 256

// checkDescriptors returns an error if the process may open too few files for the connections of `own` nodes.
func checkDescriptors(spec scenario.Nodes, own int) error {
	var limit syscall.Rlimit
	if spec.Fidelity == node.Shared || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return nil
	}
	need := own
	if spec.KubeProxy {
		need += own
	}
	if need += spareDescriptors; limit.Cur < uint64(need) {
		return fmt.Errorf("its %d nodes need about %d file descriptors, but the limit is %d (raise it on the worker's machine with `ulimit -n %d`, or use more workers)", own, need, limit.Cur, need)
	}
	return nil
}

// tell sends the coordinator a line to show to the user.
func (s *session) tell(format string, args ...any) {
	_ = s.link.send(message{Step: fmt.Sprintf(format, args...)}) // if the connection fails, the session ends
}

// maxLate is the maximum delay with which a start time may reach a worker. If the delay is shorter, the worker sends
// the overdue requests late, as it does after a stall.
const maxLate = 5 * time.Second

// startsAt converts the start time of a call to this machine's clock. If that time passed more than maxLate ago, `late`
// is the reply to send; otherwise `late` is nil. `what` names the load or nodes in the reply.
func (s *session) startsAt(c call, what string) (start time.Time, late *reply) {
	at := s.clock.Load().here(c.At)
	if by := s.now().Sub(at); by > maxLate {
		return start, &reply{Late: true, Error: fmt.Sprintf("it received the start time of %s %v too late", what, by.Round(time.Millisecond))}
	}
	// In tests, s.now may differ from the machine's clock.
	return time.Now().Add(at.Sub(s.now().Round(0))), nil
}

// obeyNodes executes a call about nodes. The function `beside` runs its argument in the background and sends the reply
// that the argument returns.
func (s *session) obeyNodes(ctx context.Context, c call, beside func(func() reply)) {
	n := s.nodes
	switch {
	case n == nil:
		beside(func() reply { return reply{} })
	case c.Verb == verbNodesStart:
		start, late := s.startsAt(c, "the nodes")
		if late != nil {
			beside(func() reply { return *late })
			return
		}
		starting, ok := n.begin(ctx)
		beside(func() reply {
			if !ok {
				return reply{Error: "its nodes have ended"}
			}
			defer n.starting.Done()
			if !apiclient.Pause(starting, time.Until(start)) {
				return failed(starting.Err())
			}
			stalled := s.self.Stalls().Total(time.Now())
			err := n.fleet.Start(starting)
			n.mu.Lock()
			n.stalled = s.self.Stalls().Total(time.Now()) - stalled
			n.mu.Unlock()
			return failed(err)
		})
	case c.Verb == verbNodesStop:
		beside(func() reply { n.stop(ctx); return reply{} })
	case c.Fault == nil:
		beside(func() reply { return reply{Error: "the call names no fault"} })
	case c.Verb == verbNodesAble:
		beside(func() reply {
			able, err := n.fleet.Able(c.Fault.Kind)
			r := failed(err)
			r.Numbers = able
			return r
		})
	case c.Verb == verbNodesHit:
		beside(func() reply { return failed(n.fleet.Hit(*c.Fault, c.Numbers)) })
	}
}

// begin returns the context in which to start the nodes. `stop` cancels this context. begin returns false if the nodes
// were started or stopped before.
func (n *nodesShare) begin(ctx context.Context) (context.Context, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over || n.cancel != nil {
		return nil, false
	}
	ctx, n.cancel = context.WithCancel(ctx)
	n.starting.Add(1)
	return ctx, true
}

// nodesEndWithin is the time limit to stop a worker's nodes.
const nodesEndWithin = 10 * time.Second

// stop stops the nodes, and cancels their start if that is in progress. It does not delete the Node objects.
func (n *nodesShare) stop(ctx context.Context) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.over = true
	if n.cancel != nil {
		n.cancel()
	}
	n.mu.Unlock()
	n.starting.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nodesEndWithin)
	defer cancel()
	n.fleet.Stop(ctx)
}

// tally returns the results of the nodes so far, or nil if the worker has no nodes.
func (n *nodesShare) tally() *node.Tally {
	if n == nil {
		return nil
	}
	t := n.fleet.Tally()
	n.mu.Lock()
	defer n.mu.Unlock()
	t.Sums.ReadyStalledSeconds = n.stalled.Seconds()
	return &t
}
