package controlplane

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/balancer"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// The methods by which faults are brought about: Plane is a fault.Host.
var _ fault.Host = (*Plane)(nil)

// Config is what the plane was made from.
func (p *Plane) Config() control.Config { return p.opts.Config }

// Kubeconfig is the administrator's.
func (p *Plane) Kubeconfig() string { return p.layout.Kubeconfig(pki.Admin) }

// member finds a component and the process that it has, or had last.
func (p *Plane) member(name string) (*member, *life, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m.process.Name == name {
			return m, m.life, nil
		}
	}
	return nil, nil, fmt.Errorf("this plane has no %s", name)
}

// living finds a component's process, which has to be there.
func (p *Plane) living(name string) (*life, error) {
	_, l, err := p.member(name)
	if err != nil {
		return nil, err
	}
	if l.ended() {
		return nil, fmt.Errorf("%s %w: it %s", name, fault.ErrNotRunning, l.ending())
	}
	return l, nil
}

// Signal sends a signal to a component's process.
func (p *Plane) Signal(name string, signal os.Signal) error {
	l, err := p.living(name)
	if err != nil {
		return err
	}
	return l.child.Signal(signal)
}

// LimitDescriptors sets the soft limit of open files of a component's process.
func (p *Plane) LimitDescriptors(name string, soft uint64) (was uint64, err error) {
	l, err := p.living(name)
	if err != nil {
		return 0, err
	}
	return fault.LimitDescriptors(l.child.PID, soft)
}

// Fsync is the agent in an etcd member's process.
func (p *Plane) Fsync(name string) (fault.Fsync, error) {
	l, err := p.living(name)
	if err != nil {
		return nil, err
	}
	if l.agent == nil {
		return nil, fmt.Errorf("%s has no agent for fsync: it is no etcd member, or this is no Linux", name)
	}
	return l.agent, nil
}

// Links are those that can be delayed and cut.
func (p *Plane) Links() []fault.Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ways.links
}

// Etcd calls the JSON gateway of one member.
func (p *Plane) Etcd(ctx context.Context, name, path string, in, out any) error {
	m, _, err := p.member(name)
	if err != nil {
		return err
	}
	return p.probe.etcdCall(ctx, m.process, path, in, out)
}

// Kill ends a component by SIGKILL. The plane lives on without it. One that has
// ended by itself, and waits for its next start, does not get that.
func (p *Plane) Kill(ctx context.Context, name string) error {
	return p.end(ctx, name, func(c *process.Child) {
		_ = c.Signal(syscall.SIGKILL) // it may have ended
		select {
		case <-c.Done():
		case <-ctx.Done():
		}
	})
}

// Stop ends a component in order, or by SIGKILL when it takes too long. Else it is
// as Kill.
func (p *Plane) Stop(ctx context.Context, name string) error {
	return p.end(ctx, name, func(c *process.Child) { c.Stop(graceOf(c.Name), ctx.Done()) })
}

func (p *Plane) end(ctx context.Context, name string, how func(*process.Child)) error {
	m, _, err := p.member(name)
	if err != nil {
		return err
	}
	m.change.Lock()
	defer m.change.Unlock()
	p.mu.Lock()
	l := m.life
	l.expected, l.claimed = true, true
	p.mu.Unlock()
	if !l.ended() {
		how(l.child)
	}
	if !l.ended() {
		return fmt.Errorf("end %s: %w", name, ctx.Err())
	}
	return nil
}

// Start starts a component that was killed or stopped, with the same ports and
// data, and with flags laid over its own for this life only. It returns when
// the process has started. One that runs is left alone.
func (p *Plane) Start(_ context.Context, name string, flags control.Flags) error {
	m, _, err := p.member(name)
	if err != nil {
		return err
	}
	m.change.Lock()
	defer m.change.Unlock()
	if _, err := p.living(name); err == nil {
		return nil
	}
	return p.startAgain(m, flags)
}

// startAgain starts a component that does not run. The caller holds its change.
func (p *Plane) startAgain(m *member, flags control.Flags) error {
	if !p.mayStart(m) {
		return fmt.Errorf("start %s: the plane is ending", m.process.Name)
	}
	l, err := p.spawn(m, flags)
	if err != nil {
		return err
	}
	p.begin(m, l)
	if err := p.publish(); err != nil {
		p.progress("%v", err)
	}
	go p.attend(m, l)
	return nil
}

// begin makes a process the one that a member has, and watches over it.
func (p *Plane) begin(m *member, l *life) {
	p.mu.Lock()
	m.life, m.restarts = l, m.restarts+1
	p.mu.Unlock()
	p.progress("%-26s started again, pid %d", m.process.Name, l.child.PID)
	p.events.Tell(control.Event{Time: l.child.Started, Kind: control.EventStart, Component: m.process.Name, Detail: fmt.Sprintf("pid %d", l.child.PID)})
	go p.watch(m, l)
}

// mayStart tells whether a component that has ended may be started again: the
// plane must not be ending, least of all for its sake.
func (p *Plane) mayStart(m *member) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settled && m.expected
}

// attend waits until a process that was started again is ready, and tells.
func (p *Plane) attend(m *member, l *life) {
	over := func() error {
		select {
		case <-l.child.Done():
			return errNotReady
		default:
			return nil
		}
	}
	if p.untilReady(p.lifetime, m, l, time.Time{}, over) != nil {
		return // its end is told by watch
	}
	p.tellReady(m, l)
}

// tellReady tells that a process that was started again is ready.
func (p *Plane) tellReady(m *member, l *life) {
	p.progress("%-26s ready after %.1f s, pid %d", m.process.Name, l.readyAfter.Seconds(), l.child.PID)
	p.events.Tell(control.Event{Kind: control.EventReady, Component: m.process.Name, Detail: fmt.Sprintf("after %.1f s", l.readyAfter.Seconds())})
}

// AwaitReady returns when a component serves, also in the eyes of the load balancer
// if it is behind that: until then it gets no connections.
func (p *Plane) AwaitReady(ctx context.Context, name string) error {
	l, err := p.living(name)
	if err != nil {
		return err
	}
	serves := l.serves
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-serves:
			serves = nil // from here on it is the balancer that is asked
		case <-tick.C:
		case <-l.child.Done():
			return fmt.Errorf("%s %s before it was ready%s", name, l.ending(), endOf(l, p.layout.Log(name)))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", name, context.Cause(ctx))
		}
		if serves == nil && p.balanced(name) {
			return nil
		}
	}
}

// balanced tells whether no load balancer keeps connections from a component.
func (p *Plane) balanced(name string) bool {
	p.mu.Lock()
	lb := p.ways.balancer
	p.mu.Unlock()
	return lb == nil || !slices.ContainsFunc(lb.States(), func(s balancer.State) bool { return s.Name == name && !s.Ready })
}
