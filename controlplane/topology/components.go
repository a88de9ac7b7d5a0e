package topology

import (
	"fmt"
	"strconv"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/pki"
)

const loopbackOnly = "listeners on loopback only"

func etcd(l Layout, p Ports) *component {
	const name = "etcd-0"
	keys := l.PKI()
	c := newComponent(name, control.KindEtcd, URL(p.EtcdClient))
	c.plumb("name", name)
	c.plumb("data-dir", l.Data(name))
	c.plumb("listen-client-urls", URL(p.EtcdClient))
	c.plumb("advertise-client-urls", URL(p.EtcdClient))
	c.plumb("listen-peer-urls", URL(p.EtcdPeer))
	c.plumb("initial-advertise-peer-urls", URL(p.EtcdPeer))
	c.plumb("initial-cluster", name+"="+URL(p.EtcdPeer))
	c.plumb("client-cert-auth", "true")
	c.plumb("trusted-ca-file", keys.Cert(pki.EtcdCA))
	c.plumb("cert-file", keys.Cert(pki.EtcdServing))
	c.plumb("key-file", keys.Key(pki.EtcdServing))
	c.plumb("peer-client-cert-auth", "true")
	c.plumb("peer-trusted-ca-file", keys.Cert(pki.EtcdPeerCA))
	c.plumb("peer-cert-file", keys.Cert(pki.EtcdPeer))
	c.plumb("peer-key-file", keys.Key(pki.EtcdPeer))
	c.scrape(keys.Cert(pki.EtcdCA), keys.Pair(pki.EtcdScrape))
	return c
}

func apiServer(l Layout, p Ports) *component {
	keys := l.PKI()
	c := newComponent("kube-apiserver-0", control.KindAPIServer, URL(p.APIServer))
	c.plumb("secure-port", strconv.Itoa(p.APIServer))
	c.plumb("etcd-servers", URL(p.EtcdClient))
	c.plumb("etcd-cafile", keys.Cert(pki.EtcdCA))
	c.plumb("etcd-certfile", keys.Cert(pki.APIServerEtcd))
	c.plumb("etcd-keyfile", keys.Key(pki.APIServerEtcd))
	c.plumb("client-ca-file", keys.Cert(pki.ClientCA))
	c.plumb("tls-cert-file", keys.Cert(pki.APIServer))
	c.plumb("tls-private-key-file", keys.Key(pki.APIServer))
	c.plumb("requestheader-client-ca-file", keys.Cert(pki.RequestHeaderCA))
	c.plumb("requestheader-allowed-names", "front-proxy-client")
	c.plumb("requestheader-username-headers", "X-Remote-User")
	c.plumb("requestheader-group-headers", "X-Remote-Group")
	c.plumb("requestheader-extra-headers-prefix", "X-Remote-Extra-")
	c.plumb("proxy-client-cert-file", keys.Cert(pki.APIServerAggregator))
	c.plumb("proxy-client-key-file", keys.Key(pki.APIServerAggregator))
	c.plumb("service-account-issuer", "https://kubernetes.default.svc.cluster.local")
	c.plumb("service-account-key-file", keys.ServiceAccountPublic())
	c.plumb("service-account-signing-key-file", keys.ServiceAccountKey())

	c.deviate("bind-address", Host, "0.0.0.0", loopbackOnly)
	c.deviate("advertise-address", Host, "", loopbackOnly)
	c.deviate("endpoint-reconciler-type", "none", "lease", "the endpoint of the kubernetes Service may not be a loopback address")
	c.deviate("anonymous-auth", "false", "true", "no anonymous request of any kind")
	c.deviate("authorization-mode", "Node,RBAC", "AlwaysAllow", "as every production cluster")
	c.deviate("enable-admission-plugins", "NodeRestriction", "", "as every production cluster: a kubelet may write its own node and pods only")
	c.deviate("service-cluster-ip-range", ServiceRange, "10.0.0.0/24", "room for more than 254 Services (the range that kubeadm uses)")
	c.scrape(keys.Cert(pki.ServerCA), keys.Pair(pki.Scrape))
	return c
}

// serving sets what the two leader-elected components share. Requests to them
// are authenticated and authorized by the API server, health probes excepted.
func (c *component) serving(l Layout, port int, identity, servingIdentity string) {
	keys := l.PKI()
	c.plumb("secure-port", strconv.Itoa(port))
	c.plumb("tls-cert-file", keys.Cert(servingIdentity))
	c.plumb("tls-private-key-file", keys.Key(servingIdentity))
	c.plumb("client-ca-file", keys.Cert(pki.ClientCA))
	c.plumb("requestheader-client-ca-file", keys.Cert(pki.RequestHeaderCA))
	c.plumb("authentication-kubeconfig", l.Kubeconfig(identity))
	c.plumb("authorization-kubeconfig", l.Kubeconfig(identity))
	c.deviate("bind-address", Host, "0.0.0.0", loopbackOnly)
	c.scrape(keys.Cert(pki.ServerCA), keys.Pair(pki.Scrape))
}

func scheduler(l Layout, p Ports) *component {
	c := newComponent("kube-scheduler-0", control.KindScheduler, URL(p.Scheduler))
	c.serving(l, p.Scheduler, pki.Scheduler, pki.SchedulerServing)
	c.plumb("config", l.SchedulerConfig())
	return c
}

func controllerManager(l Layout, p Ports, cfg control.ControllerManager) *component {
	keys := l.PKI()
	c := newComponent("kube-controller-manager-0", control.KindControllerManager, URL(p.ControllerManager))
	c.serving(l, p.ControllerManager, pki.Controllers, pki.ControllersServing)
	c.plumb("kubeconfig", l.Kubeconfig(pki.Controllers))
	c.plumb("root-ca-file", keys.Cert(pki.ServerCA))
	c.plumb("service-account-private-key-file", keys.ServiceAccountKey())
	// Signs kubelets' certificates that are asked for by a CertificateSigningRequest.
	c.plumb("cluster-signing-cert-file", keys.Cert(pki.ClientCA))
	c.plumb("cluster-signing-key-file", keys.Key(pki.ClientCA))
	c.deviate("use-service-account-credentials", "true", "false", "as every production cluster: each controller under its own account and rights")
	if cfg.QPS > 0 {
		c.deviate("kube-api-qps", formatFloat(cfg.QPS), "20", byUser)
	}
	if cfg.Burst > 0 {
		c.deviate("kube-api-burst", fmt.Sprint(cfg.Burst), "30", byUser)
	}
	return c
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
