package controlplane

import (
	"context"
	"os"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// The versions of what is linked in, as `--version` of each says.
const (
	KubernetesVersion = "v1.37.1"
	EtcdVersion       = "3.7.0"
)

// Status is the plane's state now. While the plane is ready its components are
// asked what they do among their equals, for as long as askWithin.
func (p *Plane) Status() control.Status {
	s := p.snapshot()
	for _, f := range p.faults.List() {
		if f.Ended.IsZero() {
			s.Faults = append(s.Faults, f)
		}
	}
	if s.State == control.Ready {
		ctx, cancel := context.WithTimeout(p.lifetime, askWithin)
		defer cancel()
		p.askRoles(ctx, s.Components)
	}
	return s
}

// snapshot is what is known without asking any component. What the kernel knows of
// their processes is read without the lock, for which faults would wait.
func (p *Plane) snapshot() control.Status {
	s := p.known()
	for i := range s.Components {
		if c := &s.Components[i]; c.Exit == "" {
			u := process.ReadUsage(c.PID)
			c.CPU, c.RSS, c.Shared, c.OpenFiles = u.CPU, u.RSS, u.Shared, u.OpenFiles
		}
	}
	return s
}

// known is what the supervisor knows itself.
func (p *Plane) known() control.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := control.Status{
		Schema: control.StatusSchema, Dir: p.layout.Dir, State: p.state, Since: p.since,
		Cause: p.cause, SupervisorPID: os.Getpid(), Cluster: p.cluster,
	}
	for _, m := range p.members {
		c := control.ComponentStatus{
			Name: m.process.Name, Kind: m.process.Kind, PID: m.child.PID, Address: m.process.Address,
			Log: p.layout.Log(m.process.Name), Started: m.child.Started, Ready: m.ready, ReadyAfter: m.readyAfter,
			Restarts: m.restarts,
		}
		if m.ended() {
			c.Exit, c.CPU, c.Ready = m.child.Exit().String(), m.child.Exit().CPU, false
		}
		s.Components = append(s.Components, c)
	}
	return s
}

// describe makes the content of cluster.json. The caller holds the lock.
func (p *Plane) describe(plan topology.Plan) *control.Cluster {
	keys := p.layout.PKI()
	c := &control.Cluster{
		Schema: control.ClusterSchema, Dir: p.layout.Dir,
		Server: plan.Server, CAFile: keys.Cert(pki.ServerCA),
		KubernetesVersion: KubernetesVersion, EtcdVersion: EtcdVersion,
		Kubeconfigs: map[string]string{
			pki.Admin:   p.layout.Kubeconfig(pki.Admin),
			pki.Loadgen: p.layout.Kubeconfig(pki.Loadgen),
		},
		NodeCA: keys.Pair(pki.ClientCA),
		Etcd: control.EtcdClient{
			CAFile: keys.Cert(pki.EtcdCA), KeyPair: keys.Pair(pki.EtcdClient),
		},
		SupervisorPID: os.Getpid(), Socket: p.server.path, Config: p.opts.Config,
		Deviations: plan.Deviations, StartedAt: p.started,
	}
	for _, etcd := range plan.Of(control.KindEtcd) {
		c.Etcd.Endpoints = append(c.Etcd.Endpoints, etcd.Address)
	}
	return c
}

// components describes the processes. The caller holds the lock.
func (p *Plane) components() []control.Component {
	var all []control.Component
	for _, m := range p.members {
		all = append(all, control.Component{
			Name: m.process.Name, Kind: m.process.Kind, PID: m.child.PID, Started: m.child.Started,
			Args: m.flags, Log: p.layout.Log(m.process.Name), Scrape: m.process.Scrape, ReadyAfter: m.readyAfter,
		})
	}
	return all
}
