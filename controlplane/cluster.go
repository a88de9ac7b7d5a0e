package controlplane

import (
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// The versions of the linked components, as `--version` of each prints them.
const (
	KubernetesVersion = "v1.37.1"
	EtcdVersion       = "3.7.0"
)

// Cluster describes the plane, once it is ready.
func (p *Plane) Cluster() control.Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cluster == nil {
		return control.Cluster{}
	}
	return *p.cluster
}

// describe is the content of cluster.json but for the processes.
func (p *Plane) describe(plan topology.Plan) control.Cluster {
	keys := p.layout.PKI()
	c := control.Cluster{
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

// publish writes cluster.json with the processes of now.
func (p *Plane) publish() error {
	return p.publishChanged(func(*control.Cluster) {})
}

// publishChanged changes cluster.json and writes it with the processes of now.
func (p *Plane) publishChanged(change func(*control.Cluster)) error {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	components := p.components.Components()
	p.mu.Lock()
	cluster := *p.cluster // a copy: others may read the old one
	cluster.Components = components
	change(&cluster)
	p.cluster = &cluster
	p.mu.Unlock()
	return writeJSON(filepath.Join(p.layout.Dir, control.ClusterFile), cluster)
}
