package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/pki"
	"github.com/stormglass/stormglass/controlplane/process"
	"github.com/stormglass/stormglass/controlplane/topology"
)

// portAttempts bounds how often a start is repeated because a port was taken
// between the pick and the component's listening.
const portAttempts = 5

var errPortTaken = errors.New("port taken")

// launchRetrying launches with ever new ports until none is taken.
func (p *Plane) launchRetrying(ctx context.Context) error {
	ports := lastPorts(p.layout.Dir)
	for attempt := 1; ; attempt++ {
		var err error
		if ports, err = p.opts.PickPorts(ports); err != nil {
			return err
		}
		err = p.launch(ctx, ports, p.dir.resumed || attempt > 1)
		if !errors.Is(err, errPortTaken) || attempt == portAttempts {
			return err
		}
		p.progress("%v; trying other ports", err)
		p.stopMembers(nil)
		p.mu.Lock()
		p.members = nil
		p.mu.Unlock()
		ports = topology.Ports{}
	}
}

// launch starts the processes in order and waits until each is ready. again
// tells that etcd may hold what an earlier start, or attempt at one, wrote.
func (p *Plane) launch(ctx context.Context, ports topology.Ports, again bool) error {
	plan, err := topology.Build(p.opts.Config, p.layout, ports, p.opts.Defaults)
	if err != nil {
		return err
	}
	if err := p.write(plan, ports); err != nil {
		return err
	}
	probe, err := newProber(p.layout, plan)
	if err != nil {
		return err
	}
	defer probe.close()

	if err := p.startAndAwait(ctx, plan.Etcd, probe.etcd); err != nil {
		return err
	}
	if again {
		if err := probe.updatePeerURL(ctx, ports.EtcdPeer); err != nil {
			return err
		}
	}
	if err := p.startAndAwait(ctx, plan.APIServer, probe.apiServer); err != nil {
		return err
	}
	// Leases of the last start would keep the new leaders waiting for 15 s.
	// Their holders are dead: whoever lives holds the directory's lock.
	if again {
		if err := probe.deleteLeases(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return probe.grantLoadgen(ctx) })
	group.Go(func() error { return probe.makeDefaultAccount(ctx) })
	for _, elected := range []topology.Process{plan.Scheduler, plan.ControllerManager} {
		group.Go(func() error {
			return p.startAndAwait(ctx, elected, func(ctx context.Context, started time.Time) error {
				return probe.leader(ctx, elected, started)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	p.mu.Lock()
	p.cluster = p.describe(plan)
	p.mu.Unlock()
	return nil
}

// write writes the files that the processes and the user read.
func (p *Plane) write(plan topology.Plan, ports topology.Ports) error {
	for _, identity := range []string{pki.Admin, pki.Loadgen, pki.Scheduler, pki.Controllers} {
		if err := p.layout.PKI().Kubeconfig(p.layout.Kubeconfig(identity), identity, plan.APIServer.Address); err != nil {
			return err
		}
	}
	if err := pki.WriteFile(p.layout.SchedulerConfig(), plan.SchedulerConfig); err != nil {
		return err
	}
	if plan.AuditPolicy != nil {
		if err := pki.WriteFile(p.layout.AuditPolicy(), plan.AuditPolicy); err != nil {
			return err
		}
	}
	if err := writeJSON(filepath.Join(p.layout.Dir, portsFile), ports); err != nil {
		return err
	}
	return writeJSON(p.layout.Config(), p.opts.Config)
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return pki.WriteFile(path, append(data, '\n'))
}

// readiness gives nil when a process that was started then is ready.
type readiness func(ctx context.Context, started time.Time) error

func (p *Plane) startAndAwait(ctx context.Context, proc topology.Process, ready readiness) error {
	m, err := p.startMember(proc)
	if err != nil {
		return err
	}
	return p.await(ctx, m, ready)
}

func (p *Plane) startMember(proc topology.Process) (*member, error) {
	child, err := p.spawner.Start(process.Spec{
		Name: proc.Name,
		Path: p.layout.Program(proc.Kind),
		Args: append([]string{proc.Kind}, proc.Args...),
		Env:  environment(),
		Log:  p.layout.Log(proc.Name),
		Hold: p.dir.lock,
	})
	if err != nil {
		return nil, err
	}
	m := &member{process: proc, child: child}
	p.mu.Lock()
	p.members = append(p.members, m)
	slices.SortStableFunc(p.members, func(a, b *member) int { // the two last start at once
		return cmp.Compare(slices.Index(control.Kinds(), a.process.Kind), slices.Index(control.Kinds(), b.process.Kind))
	})
	p.mu.Unlock()
	return m, nil
}

// environment is what a component inherits: nothing that could change its
// flags (etcd reads ETCD_*) or its clients (KUBECONFIG, proxies).
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch upper := strings.ToUpper(name); {
		case strings.HasPrefix(upper, "ETCD"), strings.HasPrefix(upper, "KUBE"), strings.HasSuffix(upper, "_PROXY"), strings.HasPrefix(upper, "STORMGLASS_"):
			return true
		default:
			return upper == "NOTIFY_SOCKET" // systemd's, meant for the supervisor
		}
	})
}

// How a start waits: how often it looks, and how long in all for one process.
// Upstream needs 1 to 4 s each on two cores; on a busy machine ten times that.
const (
	pollInterval = 25 * time.Millisecond
	readyWithin  = 90 * time.Second
)

// await waits until a process is ready. It fails at once when that process, or
// one that was started before it, ends.
func (p *Plane) await(ctx context.Context, m *member, ready readiness) error {
	deadline := time.NewTimer(readyWithin)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ask, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := ready(ask, m.child.Started)
		cancel()
		if err == nil {
			p.mu.Lock()
			m.ready, m.readyAfter = true, time.Since(m.child.Started)
			p.mu.Unlock()
			p.progress("%-26s ready after %.1f s, pid %d", m.process.Name, m.readyAfter.Seconds(), m.child.PID)
			return nil
		}
		select {
		case <-m.child.Done():
			return p.ended()
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("%s is not ready after %v: %w%s", m.process.Name, readyWithin, err, lastLines(m))
		case <-tick.C:
			if err := p.ended(); err != nil {
				return err
			}
		}
	}
}

// ended is the error of the first process, in the order of starting, that has
// ended: the others may have ended for want of it. It is nil if all live.
func (p *Plane) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		select {
		case <-m.child.Done():
		default:
			continue
		}
		if m.ready {
			return diedError(m)
		}
		return startError(m)
	}
	return nil
}

// startError tells of a process that ended before it was ready.
func startError(m *member) error {
	if strings.Contains(m.child.Output(), "address already in use") {
		return fmt.Errorf("%s could not listen on %s: %w", m.process.Name, m.process.Address, errPortTaken)
	}
	return fmt.Errorf("%s %s before it was ready%s", m.process.Name, m.child.Exit(), lastLines(m))
}

// diedError tells of a process that ended while the plane was up.
func diedError(m *member) error {
	return fmt.Errorf("%s died after %s: it %s%s", m.process.Name, m.child.Exit().At.Sub(m.child.Started).Round(time.Millisecond), m.child.Exit(), lastLines(m))
}

// lastLines quotes the end of a process's log.
func lastLines(m *member) string {
	lines := m.child.LastLines(8)
	if len(lines) == 0 {
		return "; its log is empty"
	}
	for i, line := range lines {
		if len(line) > maxLogLine {
			lines[i] = strings.ToValidUTF8(line[:maxLogLine], "") + "..."
		}
	}
	return "; the last lines of its log:\n  " + strings.Join(lines, "\n  ")
}

// maxLogLine cuts lines of etcd's log, which may carry a whole stack.
const maxLogLine = 300

// announce makes the plane known as ready and watches over its processes.
func (p *Plane) announce() error {
	p.mu.Lock()
	p.cluster.ReadyAt = time.Now()
	cluster := *p.cluster
	members := slices.Clone(p.members)
	p.mu.Unlock()
	if err := writeJSON(filepath.Join(p.layout.Dir, control.ClusterFile), cluster); err != nil {
		return err
	}
	os.Remove(filepath.Join(p.layout.Dir, control.StoppedFile))
	for _, m := range members {
		go func() {
			<-m.child.Done()
			p.died <- m
		}()
	}
	p.dir.resumed = true
	p.setState(control.Ready, "")
	return nil
}
