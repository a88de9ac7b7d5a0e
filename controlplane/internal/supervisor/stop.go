package supervisor

import (
	"slices"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// stopOrder is the order of stopping, and how long each kind may take before it is
// killed: API servers finish requests that are under way, etcd closes its backend.
// Together the steps bound a stop at 30 s; it usually takes seconds.
func stopOrder() []stopStep {
	return []stopStep{
		{[]string{control.KindScheduler, control.KindControllerManager}, 5 * time.Second},
		{[]string{control.KindAPIServer}, 15 * time.Second},
		{[]string{control.KindEtcd}, 10 * time.Second},
	}
}

type stopStep struct {
	kinds []string
	grace time.Duration
}

// graceOf returns the time that a component has to end.
func graceOf(name string) time.Duration {
	for _, step := range stopOrder() {
		if slices.Contains(step.kinds, control.ComponentKind(name)) {
			return step.grace
		}
	}
	return 0
}

// StopAll stops all components in order, after any start that is under way, and
// allows no further start. When now is closed, what still runs is killed.
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

// stopInOrder stops components so that none loses the server that it writes to. The
// caller holds each component's change.
//
// Components of one step are stopped together, but etcd members one after another: a
// leader hands over to another member before it ends, and would wait seven seconds
// for one that is ending too.
func (s *Supervisor) stopInOrder(components []*component, now <-chan struct{}) {
	for _, step := range stopOrder() {
		deadline := time.Now().Add(step.grace)
		var wait sync.WaitGroup
		for _, c := range components {
			if !slices.Contains(step.kinds, c.process.Kind) {
				continue
			}
			wait.Go(func() {
				exit := c.child.Stop(time.Until(deadline), now)
				s.plane.Progress("%-26s %s", c.process.Name, exit)
			})
			if c.process.Kind == control.KindEtcd {
				wait.Wait()
			}
		}
		wait.Wait()
	}
}
