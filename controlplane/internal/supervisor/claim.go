package supervisor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Claim is the exclusive right to stop and start all components while the plane keeps running.
type Claim struct {
	s          *Supervisor
	components []*component
}

// Claim waits until no component is being stopped or started, and returns the claim. It fails if the plane is not
// ready. The caller must release the claim.
func (s *Supervisor) Claim() (*Claim, error) {
	s.mu.Lock()
	claim := &Claim{s, slices.Clone(s.components)}
	settled := s.settled
	s.mu.Unlock()
	if !settled {
		return nil, errors.New("the control plane is not ready")
	}
	for _, c := range claim.components {
		c.change.Lock()
	}
	return claim, nil
}

// Release gives up the claim, so that faults and automatic restarts can stop and start components again.
func (claim *Claim) Release() {
	for _, c := range claim.components {
		c.change.Unlock()
	}
}

// Stop stops all components in order, like Supervisor.StopAll. When the channel `now` is closed, it kills the processes
// that are still running.
func (claim *Claim) Stop(now <-chan struct{}) {
	claim.s.mu.Lock()
	for _, c := range claim.components {
		c.expected, c.claimed = true, true
	}
	claim.s.mu.Unlock()
	claim.s.stopInOrder(claim.components, now)
}

// Start starts all components in order and waits until they are ready. It calls `beforeLeaders` before it starts the
// components that acquire leases.
func (claim *Claim) Start(ctx context.Context, beforeLeaders func(context.Context) error) error {
	for _, kinds := range slices.Backward(stopOrder()) {
		if control.KindOf(kinds[0]).Stage == control.StageClients {
			if err := beforeLeaders(ctx); err != nil {
				return err
			}
		}
		begun := time.Now()
		group, ctx := errgroup.WithContext(ctx)
		for _, c := range claim.components {
			if slices.Contains(kinds, c.process.Kind) {
				group.Go(func() error { return claim.s.startOver(ctx, c, begun) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	// From here on, the supervisor treats the end of a component as unexpected.
	claim.s.mu.Lock()
	defer claim.s.mu.Unlock()
	for _, c := range claim.components {
		c.expected = false
		if c.child.Ended() {
			return claim.s.diedError(c.instance)
		}
	}
	return nil
}

func (s *Supervisor) startOver(ctx context.Context, c *component, begun time.Time) error {
	i, err := s.spawn(c, nil)
	if err != nil {
		return err
	}
	i.expected = true // until Claim.Start returns; Start itself reports the end of the process as an error
	s.replace(c, i)
	err = s.awaitStart(ctx, c, i, begun, s.exitedEarly(c, i))
	if err == nil {
		s.reportReadyAgain(c, i)
	}
	return err
}

// stopOrder returns groups of kinds, in the order in which the supervisor stops them. It stops the kinds of one group
// together.
func stopOrder() [][]string {
	var order [][]string
	for _, stage := range []control.Stage{control.StageClients, control.StageAPI, control.StageServices, control.StageStorage} {
		order = append(order, control.KindsOf(stage))
	}
	return order
}

// stopGrace returns how long the supervisor waits for components of a kind to stop before it kills them. API servers
// finish requests in progress, and etcd closes its backend. The sum over all steps limits a stop to 35 s; a stop
// usually takes a few seconds.
func stopGrace(kind string) time.Duration {
	switch kind {
	case control.KindAPIServer:
		return 15 * time.Second
	case control.KindEtcd:
		return 10 * time.Second
	}
	return 5 * time.Second
}

// StopAll waits for a start in progress, stops all components in order, and prevents further starts. When the channel
// `now` is closed, it kills the processes that are still running.
func (s *Supervisor) StopAll(now <-chan struct{}) {
	s.mu.Lock()
	s.settled = false
	components := s.components
	for _, c := range components {
		c.expected = true
	}
	s.mu.Unlock()
	for _, c := range components {
		c.change.Lock()
		defer c.change.Unlock()
	}
	s.stopInOrder(components, now)
}

// stopInOrder stops components in order: each component before the servers to which it writes. The caller holds the
// mutex `change` of each component.
//
// The components of one step stop together. Only etcd members stop one after another: a leader hands over to another
// member before it ends, and would wait seven seconds for a member that is also ending.
func (s *Supervisor) stopInOrder(components []*component, now <-chan struct{}) {
	for _, kinds := range stopOrder() {
		deadline := time.Now().Add(stopGrace(kinds[0]))
		var wait sync.WaitGroup
		for _, c := range components {
			if !slices.Contains(kinds, c.process.Kind) {
				continue
			}
			wait.Go(func() {
				exit := c.child.Stop(time.Until(deadline), now)
				s.plane.Progress("%-26s stopped (%s)", c.process.Name, exit)
			})
			if c.process.Kind == control.KindEtcd {
				wait.Wait()
			}
		}
		wait.Wait()
	}
}
