package supervisor

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/readiness"
)

// The methods of fault.Host that act on one component's process are here.

func (s *Supervisor) Signal(name string, signal os.Signal) error {
	i, err := s.running(name)
	if err != nil {
		return err
	}
	return i.child.Signal(signal)
}

func (s *Supervisor) LimitDescriptors(name string, soft uint64) (was uint64, err error) {
	i, err := s.running(name)
	if err != nil {
		return 0, err
	}
	return fault.LimitDescriptors(i.child.PID, soft)
}

func (s *Supervisor) Fsync(name string) (fault.Fsync, error) {
	i, err := s.running(name)
	if err != nil {
		return nil, err
	}
	if i.agent == nil {
		return nil, fmt.Errorf("%s has no agent for fsync: it is no etcd member, or this is no Linux", name)
	}
	return i.agent, nil
}

func (s *Supervisor) Kill(ctx context.Context, name string) error {
	return s.end(ctx, name, func(c *process.Child) {
		_ = c.Signal(syscall.SIGKILL) // it may have ended
		select {
		case <-c.Done():
		case <-ctx.Done():
		}
	})
}

// Stop ends a component in order, or by SIGKILL after its grace. Else it is as Kill.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	return s.end(ctx, name, func(c *process.Child) { c.Stop(graceOf(name), ctx.Done()) })
}

func (s *Supervisor) end(ctx context.Context, name string, how func(*process.Child)) error {
	c, _, err := s.find(name)
	if err != nil {
		return err
	}
	c.change.Lock()
	defer c.change.Unlock()
	s.mu.Lock()
	i := c.instance
	i.expected, i.claimed = true, true
	s.mu.Unlock()
	if !i.child.Ended() {
		how(i.child)
	}
	if !i.child.Ended() {
		return fmt.Errorf("end %s: %w", name, ctx.Err())
	}
	return nil
}

// Start starts a component that was killed or stopped, with the same ports and data and with flags
// that replace its own until its next start.
func (s *Supervisor) Start(_ context.Context, name string, flags control.Flags) error {
	c, _, err := s.find(name)
	if err != nil {
		return err
	}
	c.change.Lock()
	defer c.change.Unlock()
	if _, err := s.running(name); err == nil {
		return nil
	}
	return s.startAgain(c, flags)
}

func (s *Supervisor) AwaitReady(ctx context.Context, name string) error {
	i, err := s.running(name)
	if err != nil {
		return err
	}
	serves := i.serves
	tick := time.NewTicker(readiness.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-serves:
			serves = nil // from here on only InService is asked
		case <-tick.C:
		case <-i.child.Done():
			return fmt.Errorf("%s %s before it was ready%s", name, i.ending(), s.quoteLog(i))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", name, context.Cause(ctx))
		}
		if serves == nil && s.plane.InService(name) {
			return nil
		}
	}
}
