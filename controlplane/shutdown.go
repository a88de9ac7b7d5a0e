package controlplane

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// stopOrder is the order of stopping, and how long each kind may take before
// it is killed: the API server lets requests that are under way finish, etcd closes
// its backend. Together they bound a stop at 30 s; seconds are usual.
func stopOrder() []stopStep {
	return []stopStep{
		{[]string{control.KindScheduler, control.KindControllerManager}, 5 * time.Second},
		{[]string{control.KindAPIServer}, 15 * time.Second},
		{[]string{control.KindEtcd}, 10 * time.Second},
	}
}

// graceOf is how long a component may take to end.
func graceOf(name string) time.Duration {
	for _, step := range stopOrder() {
		if slices.Contains(step.kinds, control.ComponentKind(name)) {
			return step.grace
		}
	}
	return 0
}

type stopStep struct {
	kinds []string
	grace time.Duration
}

// stopMembers stops all processes for good. A start of one that is under way is
// waited for.
func (p *Plane) stopMembers(now <-chan struct{}) {
	p.mu.Lock()
	p.settled = false
	members := p.members
	for _, m := range members {
		m.expected = true
	}
	p.mu.Unlock()
	for _, m := range members {
		m.change.Lock()
		defer m.change.Unlock()
	}
	p.stopInOrder(members, now)
}

// stopInOrder stops processes so that nobody loses the server it writes to while
// it still writes. The caller holds the members' change.
//
// Those of one kind are stopped together, but for etcd's: a leader hands over to
// another before it ends, and would wait seven seconds for one that is ending too.
func (p *Plane) stopInOrder(members []*member, now <-chan struct{}) {
	for _, step := range stopOrder() {
		deadline := time.Now().Add(step.grace)
		var wait sync.WaitGroup
		for _, m := range members {
			if !slices.Contains(step.kinds, m.process.Kind) {
				continue
			}
			wait.Go(func() {
				exit := m.child.Stop(time.Until(deadline), now)
				p.progress("%-26s %s", m.process.Name, exit)
			})
			if m.process.Kind == control.KindEtcd {
				wait.Wait()
			}
		}
		wait.Wait()
	}
}

// faultsWithin bounds the undoing of faults at the end. Together with the stop
// of the processes it stays below what `down` and control.Supervisor.Stop wait.
const faultsWithin = 8 * time.Second

// undoFaults takes back what faults have done: a paused process does not hear,
// and etcd keeps its alarms on disk.
func (p *Plane) undoFaults(now <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), faultsWithin)
	defer cancel()
	go func() {
		select {
		case <-now:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := p.faults.Close(ctx); err != nil {
		p.progress("undo faults: %v", err)
	}
}

// shutdown stops all processes in order and releases the directory:
//
//  0. faults are undone;
//  1. scheduler and controller manager, so that nothing new is decided;
//  2. API servers, so that nothing new is written;
//  3. etcd;
//  4. the load balancer and the links;
//  5. the last status is kept in stopped.json;
//  6. the control socket;
//  7. the whole directory, if no plane was ever ready in it.
//
// The lock stays: it ends with this process, or by Release, so that whoever
// waits for it (`down`) knows the supervisor gone too.
func (p *Plane) shutdown(cause string, now <-chan struct{}) {
	p.beginClosing()
	p.setState(control.Stopping, cause)
	p.events.Tell(control.Event{Kind: control.EventStopping, Detail: cause})
	p.progress("stopping: %s", cause)
	p.undoFaults(now)
	p.stopMembers(now)
	p.endLifetime()
	p.closeWays()
	p.setState(control.Stopped, cause)
	p.events.Close()
	if p.dir.resumed {
		if err := writeJSON(filepath.Join(p.layout.Dir, control.StoppedFile), p.Status()); err != nil {
			p.progress("%v", err)
		}
	}
	if p.server != nil {
		p.server.close()
	}
	if p.spawner != nil {
		p.spawner.Close()
	}
	if !p.dir.resumed {
		p.dir.discard()
	}
	p.messages.close()
}
