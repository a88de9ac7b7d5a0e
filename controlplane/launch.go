package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/adminclient"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
	"github.com/stormglass/stormglass/internal/atomicfile"
)

// portAttempts bounds how often a start is repeated because a port was taken
// between the pick and the component's listening.
const portAttempts = 5

func (p *Plane) launchRetrying(ctx context.Context) error {
	first := lastPorts(p.layout.Dir)
	last := first
	for attempt := 1; ; attempt++ {
		want := topology.Ports{}
		for _, name := range topology.Listeners(p.opts.Config) {
			want[name] = last[name]
		}
		ports, err := p.opts.PickPorts(want)
		if err == nil && p.dir.resumed {
			err = samePeers(first, ports, p.opts.Config)
		}
		if err != nil {
			return err
		}
		err = p.launch(ctx, ports, p.dir.resumed || attempt > 1)
		if !errors.Is(err, supervisor.ErrPortTaken) || attempt == portAttempts {
			return err
		}
		p.progress("%v; trying other ports", err)
		p.components.StopAll(p.opts.Now)
		p.disconnect()
		p.components.Forget()
		if err := p.dropEtcdData(); err != nil {
			return err
		}
		last = nil
	}
}

// dropEtcdData removes the data that several members wrote during an attempt at a
// first start: each member stores the addresses of all members, which cannot be
// changed without a quorum.
func (p *Plane) dropEtcdData() error {
	if p.dir.resumed || p.opts.Config.Count(control.KindEtcd) == 1 {
		return nil
	}
	return os.RemoveAll(p.layout.Data(""))
}

// launch starts the processes in order and waits until each is ready. again means
// that etcd may hold data of an earlier start or attempt.
func (p *Plane) launch(ctx context.Context, ports topology.Ports, again bool) error {
	plan, err := topology.Build(p.opts.Config, p.layout, ports, p.opts.Defaults)
	if err != nil {
		return err
	}
	if err := p.write(plan, ports); err != nil {
		return err
	}
	c, err := connect(plan, p.layout, ports)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.connections = c
	p.mu.Unlock()
	etcd := plan.Of(control.KindEtcd)
	if err := p.components.Launch(ctx, etcd); err != nil {
		return err
	}
	if again {
		if err := c.client.UpdatePeerURL(ctx, etcd); err != nil {
			return err
		}
		if err := p.disarm(ctx, c.client, etcd[0]); err != nil {
			return err
		}
	}
	if err := p.launchServices(ctx, plan, c.client); err != nil {
		return err
	}
	if err := p.components.Launch(ctx, plan.Of(control.KindAPIServer)); err != nil {
		return err
	}
	// The holders of an earlier start's leases are dead: a living one would hold the
	// directory's lock.
	if again {
		if err := c.client.DeleteLeases(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.client.Grant(ctx, p.opts.Config.LoadUserName(), "cluster-admin") })
	group.Go(func() error { return c.client.Grant(ctx, pki.KubeletClient, "system:kubelet-api-admin") })
	group.Go(func() error { return c.client.CreateServiceAccount(ctx, "default") })
	group.Go(func() error {
		o := topology.KubernetesEndpoint(plan.Server)
		return c.client.Apply(ctx, o.Path, o.Manifest)
	})
	if p.opts.Config.APIServer.Authentication == control.AuthenticationServiceAccount {
		group.Go(func() error { return p.issueServiceAccountToken(ctx, c.client) })
	}
	if p.opts.Config.APIServer.Authentication == control.AuthenticationBootstrapToken {
		group.Go(func() error { return p.issueBootstrapToken(ctx, c.client) })
	}
	for _, kind := range control.KindsOf(control.StageClients) {
		launch := p.components.Launch
		switch kind {
		case control.KindMetricsServer:
			launch = p.launchMetricsServer
		case control.KindCloudControllerManager:
			launch = p.launchCloudControllers
		}
		group.Go(func() error { return launch(ctx, plan.Of(kind)) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	cluster := p.describe(plan)
	p.mu.Lock()
	p.cluster = &cluster
	p.mu.Unlock()
	return nil
}

// A supervisor that is killed undoes no fault. disarm and sweepWebhooks remove from
// the plane's data what would keep it from serving as before.

// disarm takes back etcd's alarm about space, under which no leader gets its lease.
func (p *Plane) disarm(ctx context.Context, client *adminclient.Client, etcd topology.Process) error {
	raised, err := fault.Disarm(ctx, func(ctx context.Context, path string, in, out any) error {
		return client.CallEtcd(ctx, etcd, path, in, out)
	})
	if raised {
		p.progress("%-26s NOSPACE disarmed: it was raised before this start", control.KindEtcd)
	}
	return err
}

func (p *Plane) sweepWebhooks(ctx context.Context) error {
	if !p.dir.resumed {
		return nil
	}
	removed, err := fault.Sweep(ctx, p.layout.Kubeconfig(pki.Admin))
	for _, name := range removed {
		p.progress("%-26s removed: a fault had left it", name)
	}
	return err
}

func (p *Plane) write(plan topology.Plan, ports topology.Ports) error {
	if err := os.MkdirAll(p.layout.Data(""), 0o700); err != nil {
		return err
	}
	for _, identity := range []string{pki.Admin, pki.Loadgen, pki.Scheduler, pki.Controllers, pki.MetricsServer} {
		if err := p.layout.PKI().Kubeconfig(p.layout.Kubeconfig(identity), identity, plan.Server); err != nil {
			return err
		}
	}
	if err := p.writeServices(plan); err != nil {
		return err
	}
	if err := atomicfile.Write(p.layout.SchedulerConfig(), plan.SchedulerConfig); err != nil {
		return err
	}
	if plan.AuditPolicy != nil {
		if err := atomicfile.Write(p.layout.AuditPolicy(), plan.AuditPolicy); err != nil {
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
	return atomicfile.Write(path, append(data, '\n'))
}

func (p *Plane) announce() error {
	if err := p.publishChanged(func(c *control.Cluster) { c.ReadyAt = time.Now() }); err != nil {
		return err
	}
	os.Remove(filepath.Join(p.layout.Dir, control.StoppedFile))
	p.dir.resumed = true
	p.components.Settle()
	p.setState(control.Ready, "")
	return nil
}

// PickPorts picks a free loopback port for each listener: the last start's, unless it
// is zero or taken. Another process may still take one before its component listens;
// the start is then tried again.
func PickPorts(last topology.Ports) (topology.Ports, error) {
	ports := topology.Ports{}
	var held []net.Listener // all at once, so that no port is picked twice
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	pick := func(name string, port int) error {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", topology.Host, port))
		if err == nil {
			held = append(held, l)
			ports[name] = l.Addr().(*net.TCPAddr).Port
		}
		return err
	}
	var fresh []string
	for _, name := range slices.Sorted(maps.Keys(last)) { // the last start's first: a new one must not take them
		if last[name] == 0 || pick(name, last[name]) != nil {
			fresh = append(fresh, name)
		}
	}
	for _, name := range fresh {
		if err := pick(name, 0); err != nil {
			return nil, fmt.Errorf("find a free port on %s: %w", topology.Host, err)
		}
	}
	return ports, nil
}

const portsFile = "ports.json"

func lastPorts(dir string) topology.Ports {
	var p topology.Ports
	data, err := os.ReadFile(filepath.Join(dir, portsFile))
	if err != nil || json.Unmarshal(data, &p) != nil {
		return nil // then any free ports
	}
	return p
}

// samePeers refuses new ports for etcd members that keep each other's addresses in
// their data, which without links hold their ports.
func samePeers(last, now topology.Ports, cfg control.Config) error {
	if cfg.Count(control.KindEtcd) == 1 || cfg.HasLinks() {
		return nil
	}
	for i := range cfg.Count(control.KindEtcd) {
		member := control.ComponentName(control.KindEtcd, i)
		if name := topology.PeerListener(member); now[name] != last[name] {
			return fmt.Errorf("%s: another process has port %d, by which the other members know it (end that process; with networkFaults on any port does)", member, last[name])
		}
	}
	return nil
}
