// Package supervisor runs the components of a plane, each as a separate process. From the first start to the ordered
// stop, it decides which exits are expected, which components it restarts (as the kubelet would restart them), and
// which exits end the plane.
package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/readiness"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// Plane holds the parts of a plane that its Supervisor needs. Every field must be set.
type Plane struct {
	Layout topology.Layout
	// Order lists the names of all components in the order of starting.
	Order []string
	// Lock is the lock file of the plane's directory. Every process keeps it open as long as the process lives.
	Lock *os.File
	// Closing ends when the plane begins to stop. Lifetime ends when the plane's last process has stopped.
	Closing, Lifetime context.Context
	Events            *fault.Events
	Faults            *fault.Manager
	// Progress writes a message for the user, as one line.
	Progress func(format string, args ...any)
	// Ready calls readiness.Check with a client of the plane.
	Ready func(ctx context.Context, proc topology.Process, begun time.Time) error
	// InService reports whether a component receives connections. An API server behind a load balancer receives them
	// only from the load balancer.
	InService func(name string) bool
	// The Supervisor calls Restarted after it has started a new process for a component.
	Restarted func()
	// Fail ends the plane because of an error of a component.
	Fail func(error)
}

// Supervisor manages the processes of one plane. Its methods are safe for concurrent use. The caller must close it.
type Supervisor struct {
	plane   Plane
	spawner *process.Spawner

	// mu guards the fields below and the components' fields. Do not hold it while you wait for a process or write a
	// file.
	mu         sync.Mutex
	components []*component // in the order of starting
	// settled reports whether the plane is ready and not yet stopping. Only then may components be started again.
	settled bool
}

// New returns a Supervisor without processes.
func New(p Plane) (*Supervisor, error) {
	spawner, err := process.NewSpawner()
	if err != nil {
		return nil, err
	}
	return &Supervisor{plane: p, spawner: spawner}, nil
}

// Close kills the processes that still run.
func (s *Supervisor) Close() { s.spawner.Close() }

// RotateLogs rotates the logs of the plane, including the supervisor's, until ctx ends. It reports each error once.
func (s *Supervisor) RotateLogs(ctx context.Context) {
	reported := ""
	wait.UntilWithContext(ctx, func(context.Context) {
		err := s.spawner.RotateLogs(s.plane.Layout.Logs(), process.MaxLog)
		if err != nil && err.Error() != reported {
			reported = err.Error()
			s.plane.Progress("could not rotate the logs: %v", err)
		}
	}, process.RotateEvery)
}

// Launch starts processes of one kind at the same time and waits until all are ready.
func (s *Supervisor) Launch(ctx context.Context, processes []topology.Process) error {
	begun := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for _, proc := range processes {
		c, err := s.add(proc)
		group.Go(func() error {
			if err == nil {
				err = s.awaitStart(ctx, c, c.instance, begun, s.FirstExit)
			}
			if err == nil {
				s.reportReady(c, c.instance)
			}
			return err
		})
	}
	return group.Wait()
}

func (s *Supervisor) add(proc topology.Process) (*component, error) {
	c := &component{process: proc, order: slices.Index(s.plane.Order, proc.Name)}
	i, err := s.spawn(c, nil)
	if err != nil {
		return nil, err
	}
	c.instance = i
	s.mu.Lock()
	defer s.mu.Unlock()
	s.components = append(s.components, c)
	slices.SortFunc(s.components, func(a, b *component) int { return cmp.Compare(a.order, b.order) }) // several kinds may start at the same time
	return c, nil
}

// Settle ends the start of the plane: afterwards, the supervisor reports components that end and starts them again.
func (s *Supervisor) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = true
	for _, c := range s.components { // watch each instance before a fault can replace it
		go s.watch(c, c.instance)
	}
}

// Forget removes all components from the supervisor, before another attempt to start the plane. StopAll must have
// stopped them.
func (s *Supervisor) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.components = nil
}

var errNotReady = errors.New("not ready in time")

// awaitStart waits until a process that is needed for the start is ready. `begun` is the time at which the first
// process of the kind was started.
func (s *Supervisor) awaitStart(ctx context.Context, c *component, i *instance, begun time.Time, ended func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readiness.Within, errNotReady)
	defer cancel()
	err := s.await(ctx, c, i, begun, ended)
	if err != nil && context.Cause(ctx) == errNotReady {
		return &ComponentError{fmt.Errorf("%s is not ready after %v: %w%s", c.process.Name, readiness.Within, err, s.quoteLog(i))}
	}
	return err
}

// await waits until a process is ready. It returns an error if the process exits, if `ended` returns an error, or if
// ctx ends.
func (s *Supervisor) await(ctx context.Context, c *component, i *instance, begun time.Time, ended func() error) error {
	check := func(ctx context.Context) error { return s.plane.Ready(ctx, c.process, begun) }
	if err := readiness.Await(ctx, check, i.child.Done(), ended); err != nil {
		return err
	}
	s.mu.Lock()
	i.ready, i.readyAfter = true, time.Since(i.child.Started)
	s.mu.Unlock()
	close(i.serves)
	return nil
}

// startAgain starts a component whose process has ended. The caller holds c.change.
func (s *Supervisor) startAgain(c *component, flags control.Flags) error {
	s.mu.Lock()
	allowed := s.settled && c.expected // false if the control plane is stopping, for example because this component has died
	s.mu.Unlock()
	if !allowed {
		return fmt.Errorf("start %s: the control plane is stopping", c.process.Name)
	}
	i, err := s.spawn(c, flags)
	if err != nil {
		return err
	}
	s.replace(c, i)
	s.plane.Restarted()
	go func() {
		if s.await(s.plane.Lifetime, c, i, time.Time{}, s.exitedEarly(c, i)) == nil {
			s.reportReadyAgain(c, i)
		} // otherwise watch reports the end of the process
	}()
	return nil
}

func (s *Supervisor) replace(c *component, i *instance) {
	s.mu.Lock()
	c.last, c.instance, c.restarts = c.instance, i, c.restarts+1
	s.mu.Unlock()
	s.plane.Progress("%-26s started again, pid %d", c.process.Name, i.child.PID)
	s.plane.Events.Append(control.Event{
		Time: i.child.Started, Kind: control.EventStart, Component: c.process.Name, Detail: fmt.Sprintf("pid %d", i.child.PID), PID: i.child.PID,
		Version: c.process.Release.VersionOf(c.process.Kind),
	})
	go s.watch(c, i)
}

func (s *Supervisor) reportReady(c *component, i *instance) {
	s.plane.Progress("%-26s ready after %.1f s, pid %d", c.process.Name, i.readyAfter.Seconds(), i.child.PID)
}

func (s *Supervisor) reportReadyAgain(c *component, i *instance) {
	s.reportReady(c, i)
	s.plane.Events.Append(control.Event{Kind: control.EventReady, Component: c.process.Name, Detail: fmt.Sprintf("after %.1f s", i.readyAfter.Seconds())})
}
