package topology

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/network"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

// Proxy is one listener of the supervisor, through which the component From reaches
// others so that each link can be delayed and cut.
type Proxy struct {
	// Name is the name of the listener, Listen its address, as host:port.
	Name, Listen, From string
	// Forward means an HTTP proxy whose clients name one of the targets' hosts by CONNECT.
	// Without it there is one target, which the connection itself reaches.
	Forward bool
	Targets []network.Target
}

// peerPort is part of a member's name among its peers, and of nothing else: the
// proxies know where the member listens. It never changes, and so what etcd
// keeps of its members holds when a plane resumes with other ports.
const peerPort = 2380

// peerHost is a member as its peers ask their proxy for it.
func peerHost(member string) string {
	return member + "." + pki.PeerDomain + ":" + strconv.Itoa(peerPort)
}

// peerURL returns the URL at which a member tells its peers to reach it.
//
// With links it is a name that no resolver knows: net/http sends loopback
// addresses past a proxy, but names through it, and etcd's transport between
// peers takes its proxy from the environment. Members compare such URLs as
// text first and look nothing up when they are equal.
func peerURL(cfg control.Config, p Ports, member string) string {
	if throughProxies(cfg) {
		return "https://" + peerHost(member)
	}
	return URL(p[PeerListener(member)])
}

func throughProxies(cfg control.Config) bool {
	return cfg.HasLinks() && cfg.Count(control.KindEtcd) > 1
}

func proxies(cfg control.Config, p Ports) []Proxy {
	if !cfg.HasLinks() {
		return nil
	}
	var all []Proxy
	etcds := cfg.ComponentsOf(control.KindEtcd)
	for _, from := range etcds {
		if len(etcds) == 1 {
			break
		}
		proxy := Proxy{Name: PeerProxy(from), Listen: hostPort(p[PeerProxy(from)]), From: from, Forward: true}
		for _, to := range etcds {
			if to != from {
				proxy.Targets = append(proxy.Targets, network.Target{To: to, Host: peerHost(to), Upstream: hostPort(p[PeerListener(to)])})
			}
		}
		all = append(all, proxy)
	}
	for _, from := range cfg.ComponentsOf(control.KindAPIServer) {
		for _, to := range etcds {
			name := LinkListener(from, to)
			all = append(all, Proxy{Name: name, Listen: hostPort(p[name]), From: from, Targets: []network.Target{{To: to, Upstream: hostPort(p[to])}}})
		}
	}
	for _, l := range aggregatorLinks(cfg) {
		name := LinkListener(l.From, l.To)
		all = append(all, Proxy{Name: name, Listen: hostPort(p[name]), From: l.From, Targets: []network.Target{{To: l.To, Upstream: hostPort(p[l.To])}}})
	}
	return all
}

// aggregatorLinks returns the links from API servers to metrics-server.
func aggregatorLinks(cfg control.Config) []control.Link {
	return slices.DeleteFunc(cfg.Links(), func(l control.Link) bool { return control.ComponentKind(l.To) != control.KindMetricsServer })
}

func proxyEnvironment(p Ports, member string) string {
	proxy := url.URL{Scheme: "http", Host: hostPort(p[PeerProxy(member)])}
	return "HTTPS_PROXY=" + proxy.String()
}

// Ports are the loopback ports of a plane, by listener. A component's name
// stands for where its clients reach it.
type Ports map[string]int

// Balancer names the listener of the load balancer before several API servers.
const Balancer = "balancer"

// The names of listeners: a member's for its peers, its forward proxy to these, and that
// through which an API server reaches a member or metrics-server.
func PeerListener(member string) string        { return member + "/peer" }
func PeerProxy(member string) string           { return member + "/proxy" }
func LinkListener(apiServer, to string) string { return apiServer + "/" + to }

// Listeners names everything in a plane that listens on its own port.
func Listeners(cfg control.Config) []string {
	names := cfg.Components()
	etcds := cfg.ComponentsOf(control.KindEtcd)
	for _, member := range etcds {
		names = append(names, PeerListener(member))
	}
	if cfg.Count(control.KindAPIServer) > 1 {
		names = append(names, Balancer)
	}
	if !cfg.HasLinks() {
		return names
	}
	for _, member := range etcds {
		if len(etcds) > 1 {
			names = append(names, PeerProxy(member))
		}
		for _, apiServer := range cfg.ComponentsOf(control.KindAPIServer) {
			names = append(names, LinkListener(apiServer, member))
		}
	}
	for _, l := range aggregatorLinks(cfg) {
		names = append(names, LinkListener(l.From, l.To))
	}
	return names
}
