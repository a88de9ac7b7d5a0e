package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/mirror"
	"github.com/stormglass/stormglass/controlplane/internal/observer"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// MetricsServerVersion is the version of the metrics-server module that is linked into this program.
const MetricsServerVersion = "v0.9.0"

// Cluster returns the description of the plane. Before the plane is ready, it returns the zero value.
func (p *Plane) Cluster() control.Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cluster == nil {
		return control.Cluster{}
	}
	return *p.cluster
}

// describe returns the content of cluster.json, except the processes.
func (p *Plane) describe(plan topology.Plan) control.Cluster {
	keys := p.layout.PKI()
	c := control.Cluster{
		Schema: control.ClusterSchema, Dir: p.layout.Dir,
		Server: plan.Server, CAFile: keys.Cert(pki.ServerCA),
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

// mirror starts to publish the components as mirror pods on control-plane nodes.
func (p *Plane) mirror() error {
	admin, err := clientcmd.BuildConfigFromFlags("", p.layout.Kubeconfig(pki.Admin))
	if err != nil {
		return err
	}
	p.nodes, err = mirror.Start(mirror.Config{
		Admin: admin, Keys: p.layout.PKI(), MetricsServerVersion: MetricsServerVersion,
		Components: p.components.Snapshots, Events: p.events.After,
	})
	return err
}

func (p *Plane) publish() error {
	return p.publishChanged(func(*control.Cluster) {})
}

// publishChanged applies `change` to a copy of the plane's description, adds the current processes, and writes the copy
// to cluster.json.
func (p *Plane) publishChanged(change func(*control.Cluster)) error {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	components := p.components.Components()
	p.mu.Lock()
	cluster := *p.cluster // callers of Cluster may still read the old description, so do not modify it
	cluster.Components, cluster.Config = components, p.opts.Config
	cluster.KubernetesVersion = cluster.Config.ReleaseOf(control.ComponentName(control.KindAPIServer, 0)).Kubernetes
	cluster.EtcdVersion = cluster.Config.ReleaseOf(control.ComponentName(control.KindEtcd, 0)).Etcd
	change(&cluster)
	p.cluster = &cluster
	p.mu.Unlock()
	return writeJSON(filepath.Join(p.layout.Dir, control.ClusterFile), cluster)
}

// Status returns the plane's current state.
func (p *Plane) Status() control.Status {
	p.mu.Lock()
	s := control.Status{
		Schema: control.StatusSchema, Dir: p.layout.Dir, State: p.state, Since: p.since,
		Cause: p.cause, SupervisorPID: os.Getpid(), Cluster: p.cluster,
	}
	c := p.connections
	p.mu.Unlock()
	s.Components = p.components.Status()
	s.Faults = slices.DeleteFunc(p.faults.List(), func(f control.FaultStatus) bool { return !f.Ended.IsZero() })
	if s.State == control.Ready {
		c.roles.Fill(p.lifetime, s.Components, c.balancer)
	}
	return s
}

type (
	// Observer is a running `loadgen observe` process.
	Observer = observer.Observer
	// ObserverOptions configure an Observer.
	ObserverOptions = observer.Options
)

const observerLog = "observer"

// FindLoadgen returns the path of the loadgen program. It looks in the directory of `executable`, then on PATH.
func FindLoadgen(executable string) (string, error) { return observer.Find(executable) }

// Observe starts `loadgen observe` for a ready plane, and records the observer's URL in cluster.json and in the status.
// The caller must stop the observer.
func (p *Plane) Observe(ctx context.Context, o ObserverOptions) (*Observer, error) {
	o.Dir, o.Log = p.layout.Dir, LogFile(p.layout.Dir, observerLog)
	w, err := observer.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := p.publishChanged(func(c *control.Cluster) { c.Observe = w.URL() }); err != nil {
		w.Stop()
		return nil, fmt.Errorf("observe: %w", err)
	}
	return w, nil
}
