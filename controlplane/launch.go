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

// portAttempts is the maximum number of attempts to start a plane. launchRetrying tries again if another process took a
// port after the plane picked it and before the component listened on it.
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

// dropEtcdData removes the data that several etcd members wrote during a failed attempt at a first start. Each member
// stores the addresses of all members. Without a quorum, these addresses cannot be changed.
func (p *Plane) dropEtcdData() error {
	if p.dir.resumed || p.opts.Config.Count(control.KindEtcd) == 1 {
		return nil
	}
	return os.RemoveAll(p.layout.Data(""))
}

// launch starts the processes in order and waits until each is ready. If `again` is true, etcd may hold data of an
// earlier start or attempt.
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
	// No process that held a lease in an earlier start still runs; otherwise this start could not have locked the
	// directory.
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

// A killed supervisor does not undo its faults, and etcd's data keeps the effects of some. At the next start, disarm
// and sweepWebhooks undo the effects that would keep the plane from serving.

// disarm disarms etcd's NOSPACE alarm. While the alarm is raised, no component can acquire its lease.
func (p *Plane) disarm(ctx context.Context, client *adminclient.Client, etcd topology.Process) error {
	raised, err := fault.Disarm(ctx, func(ctx context.Context, path string, in, out any) error {
		return client.CallEtcd(ctx, etcd, path, in, out)
	})
	if raised {
		p.progress("%-26s NOSPACE alarm disarmed: the alarm was raised before this start", control.KindEtcd)
	}
	return err
}

func (p *Plane) sweepWebhooks(ctx context.Context) error {
	if !p.dir.resumed {
		return nil
	}
	removed, err := fault.Sweep(ctx, p.layout.Kubeconfig(pki.Admin))
	for _, name := range removed {
		p.progress("%-26s removed: left behind by a fault", name)
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
	if plan.Tracing != nil {
		if err := atomicfile.Write(p.layout.Tracing(), plan.Tracing); err != nil {
			return err
		}
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

// PickPorts picks a loopback port for each listener: the port of the last start if it is still free, otherwise any free
// port. `last` holds the ports of the last start; 0 means no port. If another process takes a port before the component
// listens on it, the plane tries the start again.
func PickPorts(last topology.Ports) (topology.Ports, error) {
	ports := topology.Ports{}
	var held []net.Listener // all stay open until PickPorts returns, so that no port is picked twice
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
	for _, name := range slices.Sorted(maps.Keys(last)) { // the ports of the last start first, so that no new listener takes them
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
		return nil // the plane may use any free ports
	}
	return p
}

// samePeers returns an error if an etcd member has a new peer port although the members' data contains the old port.
// The data contains the peer ports if there are several members and networkFaults is off.
func samePeers(last, now topology.Ports, cfg control.Config) error {
	if cfg.Count(control.KindEtcd) == 1 || cfg.HasLinks() {
		return nil
	}
	for i := range cfg.Count(control.KindEtcd) {
		member := control.ComponentName(control.KindEtcd, i)
		if name := topology.PeerListener(member); now[name] != last[name] {
			return fmt.Errorf("%s: another process uses its port %d, which is stored in the etcd data (end that process; with networkFaults off, etcd members cannot change ports)", member, last[name])
		}
	}
	return nil
}
