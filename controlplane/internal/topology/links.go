package topology

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/network"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

// Proxy is a listener of the supervisor through which the component From reaches other components, so that each link
// can be delayed and cut.
type Proxy struct {
	// Name is the name of the listener, Listen its address, as host:port.
	Name, Listen, From string
	// Forward is true for an HTTP proxy, whose clients name the host of a target by CONNECT. Otherwise there is one
	// target, to which every connection is forwarded.
	Forward bool
	Targets []network.Target
}

// peerPort is the port in the name by which peers address a member. It is used for nothing else, because the proxies
// know where the member listens. It never changes, so the member addresses in etcd's data stay valid when a plane
// resumes with other ports.
const peerPort = 2380

// peerHost returns the host and port by which peers name a member to their proxy.
func peerHost(member string) string {
	return member + "." + pki.PeerDomain + ":" + strconv.Itoa(peerPort)
}

// peerURL returns the URL at which a member tells its peers to reach it.
//
// With links, the URL has a name that no resolver knows. net/http bypasses a proxy for loopback addresses but not for
// names, and etcd's transport between peers takes its proxy from the environment. Members compare such URLs as text
// first and do not resolve names if they are equal.
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

// Ports maps the listeners of a plane to their loopback ports. A component's name is the name of the listener for its
// clients.
type Ports map[string]int

// Balancer is the name of the listener of the load balancer in front of several API servers.
const Balancer = "balancer"

// PeerListener, PeerProxy and LinkListener return the names of listeners: a member's listener for its peers, its
// forward proxy to its peers, and the listener through which an API server reaches a member or metrics-server.
func PeerListener(member string) string        { return member + "/peer" }
func PeerProxy(member string) string           { return member + "/proxy" }
func LinkListener(apiServer, to string) string { return apiServer + "/" + to }

// Listeners returns the names of all listeners in a plane.
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
