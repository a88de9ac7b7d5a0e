package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// portAttempts bounds how often a start is repeated because a port was taken
// between the pick and the component's listening.
const portAttempts = 5

var errPortTaken = errors.New("port taken")

// launchRetrying launches with ever new ports until none is taken.
func (p *Plane) launchRetrying(ctx context.Context) error {
	first := lastPorts(p.layout.Dir)
	last := first
	for attempt := 1; ; attempt++ {
		ports, err := p.pickPorts(last)
		if err == nil && p.dir.resumed {
			err = samePeers(first, ports, p.opts.Config)
		}
		if err != nil {
			return err
		}
		err = p.launch(ctx, ports, p.dir.resumed || attempt > 1)
		if !errors.Is(err, errPortTaken) || attempt == portAttempts {
			return err
		}
		p.progress("%v; trying other ports", err)
		p.stopMembers(p.opts.Now)
		p.closeWays()
		p.mu.Lock()
		p.members = nil
		p.mu.Unlock()
		if err := p.forgetMembers(); err != nil {
			return err
		}
		last = nil
	}
}

// pickPorts has a port chosen for each listener.
func (p *Plane) pickPorts(last topology.Ports) (topology.Ports, error) {
	want := topology.Ports{}
	for _, name := range topology.Listeners(p.opts.Config) {
		want[name] = last[name]
	}
	return p.opts.PickPorts(want)
}

// forgetMembers removes what several members wrote during an attempt to start
// for the first time: each keeps the others' addresses, and without a quorum
// nobody can tell them new ones.
func (p *Plane) forgetMembers() error {
	if p.dir.resumed || p.opts.Config.Count(control.KindEtcd) == 1 {
		return nil
	}
	return os.RemoveAll(p.layout.Data(""))
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
	if err := p.openWays(plan, probe, ports); err != nil {
		return err
	}
	if err := p.startAndAwait(ctx, plan.Of(control.KindEtcd)); err != nil {
		return err
	}
	if again {
		if err := probe.updatePeerURL(ctx); err != nil {
			return err
		}
		if err := p.disarm(ctx, probe, plan); err != nil {
			return err
		}
	}
	if err := p.startAndAwait(ctx, plan.Of(control.KindAPIServer)); err != nil {
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
	for _, kind := range []string{control.KindScheduler, control.KindControllerManager} {
		group.Go(func() error { return p.startAndAwait(ctx, plan.Of(kind)) })
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
	if err := os.MkdirAll(p.layout.Data(""), 0o700); err != nil {
		return err
	}
	for _, identity := range []string{pki.Admin, pki.Loadgen, pki.Scheduler, pki.Controllers} {
		if err := p.layout.PKI().Kubeconfig(p.layout.Kubeconfig(identity), identity, plan.Server); err != nil {
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

// startAndAwait starts processes of one kind together and waits until all are
// ready.
func (p *Plane) startAndAwait(ctx context.Context, processes []topology.Process) error {
	begun := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for _, proc := range processes {
		m, err := p.startMember(proc)
		group.Go(func() error {
			if err != nil {
				return err
			}
			return p.await(ctx, m, begun)
		})
	}
	return group.Wait()
}

// announce makes the plane known as ready and watches over its processes.
func (p *Plane) announce() error {
	p.mu.Lock()
	p.cluster.ReadyAt = time.Now()
	p.mu.Unlock()
	if err := p.publish(); err != nil {
		return err
	}
	os.Remove(filepath.Join(p.layout.Dir, control.StoppedFile))
	p.dir.resumed = true
	p.mu.Lock()
	p.settled = true
	for _, m := range p.members { // before any fault gives one another life
		go p.watch(m, m.life)
	}
	p.mu.Unlock()
	p.setState(control.Ready, "")
	return nil
}

// publish writes cluster.json, with the processes as they are now.
func (p *Plane) publish() error {
	p.publishing.Lock() // so that the newest is written last
	defer p.publishing.Unlock()
	p.mu.Lock()
	cluster := *p.cluster
	cluster.Components = p.components()
	p.cluster = &cluster // those who have the old one may still read it
	p.mu.Unlock()
	return writeJSON(filepath.Join(p.layout.Dir, control.ClusterFile), cluster)
}
