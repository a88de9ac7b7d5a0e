package topology

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

const loopbackOnly = "loopback only: no listener is open to the network"

// watchTermination is the time limit for a stopping API server to end its watches. The API server ends 200 watches per
// second, or more if this rate would exceed the time limit. The order of the steps of a stop is in k8s.io/apiserver's
// preparedGenericAPIServer.RunWithContext.
const watchTermination = "5s"

type maker struct {
	cfg    control.Config
	layout Layout
	ports  Ports
}

func (m maker) etcd(name string) *component {
	keys := m.layout.PKI()
	clients, peers := URL(m.ports[name]), URL(m.ports[PeerListener(name)])
	c := newComponent(name, control.KindEtcd, clients)
	c.process.Peer = peerURL(m.cfg, m.ports, name)
	c.set("name", name)
	c.set("data-dir", m.layout.Data(name))
	c.set("listen-client-urls", clients)
	c.set("advertise-client-urls", clients)
	c.set("listen-peer-urls", peers)
	c.set("initial-advertise-peer-urls", c.process.Peer)
	c.set("initial-cluster", InitialCluster(m.cfg, m.ports))
	if throughProxies(m.cfg) {
		c.process.Env = append(c.process.Env, proxyEnvironment(m.ports, name))
	}
	c.set("client-cert-auth", "true")
	c.set("trusted-ca-file", keys.Cert(pki.EtcdCA))
	c.set("cert-file", keys.Cert(pki.EtcdServing))
	c.set("key-file", keys.Key(pki.EtcdServing))
	c.set("peer-client-cert-auth", "true")
	c.set("peer-trusted-ca-file", keys.Cert(pki.EtcdPeerCA))
	c.set("peer-cert-file", keys.Cert(pki.EtcdPeer))
	c.set("peer-key-file", keys.Key(pki.EtcdPeer))
	c.scrape(keys.Cert(pki.EtcdCA), keys.Pair(pki.EtcdScrape))
	if c.trace(m.cfg.Tracing) {
		c.setDeviation("enable-distributed-tracing", "true", "false", tracingReason)
		c.setDeviation("distributed-tracing-address", m.cfg.Tracing.Endpoint, "localhost:4317", tracingReason)
		c.set("distributed-tracing-instance-id", name)
	}
	return c
}

// InitialCluster returns the value of etcd's flag --initial-cluster: the names and peer URLs of all members.
func InitialCluster(cfg control.Config, p Ports) string {
	var all []string
	for _, member := range cfg.ComponentsOf(control.KindEtcd) {
		all = append(all, member+"="+peerURL(cfg, p, member))
	}
	return strings.Join(all, ",")
}

func (m maker) apiServer(name string) *component {
	keys := m.layout.PKI()
	c := newComponent(name, control.KindAPIServer, URL(m.ports[name]))
	c.process.Descriptors = uint64(m.cfg.APIServer.Descriptors)
	if n := m.cfg.APIServer.CPUs; n > 0 {
		c.process.Env = append(c.process.Env, fmt.Sprintf("GOMAXPROCS=%d", n))
	}
	c.set("secure-port", strconv.Itoa(m.ports[name]))
	c.set("etcd-servers", strings.Join(m.etcdServers(name), ","))
	c.set("etcd-cafile", keys.Cert(pki.EtcdCA))
	c.set("etcd-certfile", keys.Cert(pki.APIServerEtcd))
	c.set("etcd-keyfile", keys.Key(pki.APIServerEtcd))
	c.set("client-ca-file", keys.Cert(pki.ClientCA))
	c.set("tls-cert-file", keys.Cert(pki.APIServer))
	c.set("tls-private-key-file", keys.Key(pki.APIServer))
	c.set("kubelet-client-certificate", keys.Cert(pki.KubeletClient))
	c.set("kubelet-client-key", keys.Key(pki.KubeletClient))
	c.set("kubelet-certificate-authority", keys.Cert(pki.ClientCA))
	c.set("requestheader-client-ca-file", keys.Cert(pki.RequestHeaderCA))
	c.set("requestheader-allowed-names", "front-proxy-client")
	c.set("requestheader-username-headers", "X-Remote-User")
	c.set("requestheader-group-headers", "X-Remote-Group")
	c.set("requestheader-extra-headers-prefix", "X-Remote-Extra-")
	c.set("proxy-client-cert-file", keys.Cert(pki.APIServerAggregator))
	c.set("proxy-client-key-file", keys.Key(pki.APIServerAggregator))
	c.set("service-account-issuer", "https://kubernetes.default.svc.cluster.local")
	c.set("service-account-key-file", keys.ServiceAccountPublic())
	c.set("service-account-signing-key-file", keys.ServiceAccountKey())

	c.setDeviation("bind-address", Host, "0.0.0.0", loopbackOnly)
	c.setDeviation("advertise-address", Host, "", loopbackOnly)
	c.setDeviation("endpoint-reconciler-type", "none", "lease", "the endpoint of the kubernetes Service must not be a loopback IP address, so Stormglass writes an EndpointSlice of type FQDN")
	c.setDeviation("anonymous-auth", "false", "true", "API servers refuse all anonymous requests")
	c.setDeviation("allow-privileged", "true", "false", "as kubeadm sets it: network and storage plugins run in privileged pods")
	c.setDeviation("enable-admission-plugins", "NodeRestriction", "", "as in every production cluster: a kubelet may write only its own node and pods")
	c.setDeviation("kubelet-preferred-address-types", "InternalIP", "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP", "the nodes' names are not in DNS")
	c.setDeviation("service-cluster-ip-range", ServiceRange, "10.0.0.0/24", "room for more than 254 Services (the range that kubeadm uses)")
	c.setDeviation("shutdown-watch-termination-grace-period", watchTermination, "0s", "a stopping API server closes its watches; with upstream's default it waits for them until it is killed")
	c.scrape(keys.Cert(pki.ServerCA), keys.Pair(pki.Scrape))
	c.authenticate(m.cfg, m.layout)
	c.authorize(m.cfg, m.layout)
	c.audit(m.cfg, m.layout)
	c.encrypt(m.cfg, m.layout)
	if c.trace(m.cfg.Tracing) {
		c.setDeviation("tracing-config-file", m.layout.Tracing(), "", tracingReason)
	}
	return c
}

// KubernetesEndpoint returns the EndpointSlice of the Service `kubernetes`, with the host and the port of the URL
// `server`. The slice has the address type FQDN, because API servers refuse loopback addresses in slices of the types
// IPv4 and IPv6, and in Endpoints. kube-proxy ignores slices of type FQDN.
func KubernetesEndpoint(server string) Object {
	host, port, _ := strings.Cut(strings.TrimPrefix(server, "https://"), ":")
	return Object{"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kubernetes
  namespace: default
  labels: {kubernetes.io/service-name: kubernetes, endpointslice.kubernetes.io/managed-by: stormglass}
addressType: FQDN
endpoints:
- addresses: [%q]
  conditions: {ready: true}
ports: [{name: https, port: %s, protocol: TCP}]
`, host, port)}
}

func (m maker) etcdServers(apiServer string) []string {
	var urls []string
	for _, member := range m.cfg.ComponentsOf(control.KindEtcd) {
		listener := member
		if m.cfg.HasLinks() {
			listener = LinkListener(apiServer, member)
		}
		urls = append(urls, URL(m.ports[listener]))
	}
	return urls
}

func (m maker) serving(c *component, identity, servingIdentity string) {
	keys := m.layout.PKI()
	c.set("secure-port", strconv.Itoa(m.ports[c.process.Name]))
	c.set("tls-cert-file", keys.Cert(servingIdentity))
	c.set("tls-private-key-file", keys.Key(servingIdentity))
	c.set("client-ca-file", keys.Cert(pki.ClientCA))
	c.set("requestheader-client-ca-file", keys.Cert(pki.RequestHeaderCA))
	c.set("authentication-kubeconfig", m.layout.Kubeconfig(identity))
	c.set("authorization-kubeconfig", m.layout.Kubeconfig(identity))
	c.setDeviation("bind-address", Host, "0.0.0.0", loopbackOnly)
	c.scrape(keys.Cert(pki.ServerCA), keys.Pair(pki.Scrape))
}

func (m maker) scheduler(name string) *component {
	c := newComponent(name, control.KindScheduler, URL(m.ports[name]))
	m.serving(c, pki.Scheduler, pki.SchedulerServing)
	c.set("config", m.layout.SchedulerConfig())
	c.deviations = append(m.schedulerDeviations(), c.deviations...)
	return c
}

func (m maker) controllerManager(name string) *component {
	keys := m.layout.PKI()
	cfg := m.cfg.ControllerManager
	c := newComponent(name, control.KindControllerManager, URL(m.ports[name]))
	m.serving(c, pki.Controllers, pki.ControllersServing)
	c.set("kubeconfig", m.layout.Kubeconfig(pki.Controllers))
	c.set("root-ca-file", keys.Cert(pki.ServerCA))
	c.set("service-account-private-key-file", keys.ServiceAccountKey())
	// The controller manager signs CertificateSigningRequests of kubelets with this certificate.
	c.set("cluster-signing-cert-file", keys.Cert(pki.ClientCA))
	c.set("cluster-signing-key-file", keys.Key(pki.ClientCA))
	c.setDeviation("use-service-account-credentials", "true", "false", "as in every production cluster: each controller uses its own service account")
	c.limit(cfg.QPS, cfg.Burst)
	if m.cfg.Count(control.KindCloudControllerManager) > 0 {
		c.setDeviation("allocate-node-cidrs", "true", "false", nodeRoutes)
		c.setDeviation("cluster-cidr", PodRange, "", nodeRoutes)
	}
	return c
}

// limit sets the rate limit of a controller manager's clients. Zero keeps upstream's default.
func (c *component) limit(qps float64, burst int) {
	if qps != 0 {
		c.setDeviation("kube-api-qps", strconv.FormatFloat(qps, 'f', -1, 64), "20", byUser)
	}
	if burst > 0 {
		c.setDeviation("kube-api-burst", fmt.Sprint(burst), "30", byUser)
	}
}

// auditBackups is the number of rotated audit logs that an API server keeps. 40 files of 100 MB (upstream's file size)
// hold about four million requests. Upstream's default of 100 files would take 10 GB.
const auditBackups = "40"

// audit makes the API server log each request of the load. The log backend stays in upstream's mode "blocking": it
// writes an event before the request ends. A buffered backend would add less time to each request, but would drop
// events when its buffer is full, and an incomplete count proves nothing.
func (c *component) audit(cfg control.Config, l Layout) {
	if cfg.APIServer.SendsAudit() {
		const reason = "apiServer.auditWebhook: API servers send the load's audit events to audit-webhook"
		if !cfg.Audited() {
			c.setDeviation("audit-policy-file", l.AuditPolicy(), "", reason)
		}
		c.setDeviation("audit-webhook-config-file", l.Kubeconfig(control.KindAuditWebhook), "", reason)
		c.setDeviation("audit-webhook-mode", cfg.APIServer.AuditWebhook, control.AuditWebhookBatch, reason)
	}
	if !cfg.Audited() {
		return
	}
	const reason = "apiServer.audit: logs a line for each request of the load, which costs CPU and adds some latency"
	c.setDeviation("audit-policy-file", l.AuditPolicy(), "", reason)
	c.setDeviation("audit-log-path", l.AuditLog(c.process.Name), "", reason)
	c.setDeviation("audit-log-maxbackup", auditBackups, "100", "apiServer.audit: at most 4 GB of log for each API server")
}

// auditPolicy returns the content of the file Layout.AuditPolicy, or nil if the config does not enable auditing. The
// policy omits the load's watches, because their clients decide how long they last. It also omits the stage
// RequestReceived, because the event of the last stage also contains the time when the request was received.
func auditPolicy(cfg control.Config) []byte {
	if !cfg.Audited() && !cfg.APIServer.SendsAudit() {
		return nil
	}
	return []byte(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [watch]
- level: Metadata
  users: [` + cfg.LoadUserName() + `]
- level: None
`)
}
