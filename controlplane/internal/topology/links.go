package topology

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/network"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

// Proxy is a listener in the supervisor through which the component From reaches other components. The connections to
// each target form a link that can be delayed and cut.
type Proxy struct {
	// Name is the name of the listener. Listen is its address, as host:port. From is the component that connects.
	Name, Listen, From string
	// Forward reports whether this is an HTTP proxy. Its clients name the target's host in a CONNECT request. If
	// Forward is false, there is one target, and the proxy forwards every connection to it.
	Forward bool
	Targets []network.Target
}

// peerPort is the port in the peer URLs of etcd members that reach each other through proxies. Nothing listens on it:
// the proxies know the real port of each member. It never changes, so that the peer URLs in etcd's data stay valid when
// a plane resumes with other ports.
const peerPort = 2380

// peerHost returns the host and port of a member in requests that other members send to their proxy.
func peerHost(member string) string {
	return member + "." + pki.PeerDomain + ":" + strconv.Itoa(peerPort)
}

// peerURL returns the peer URL that an etcd member advertises.
//
// If the connections between members go through proxies, the URL contains a name that cannot be resolved. With a
// loopback address, net/http would bypass the proxy. etcd's peer transport takes its proxy from the environment. etcd
// first compares peer URLs as strings, and does not resolve the names if the strings are equal.
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

// aggregatorLinks returns the network links from API servers to metrics-server.
func aggregatorLinks(cfg control.Config) []control.Link {
	return slices.DeleteFunc(cfg.Links(), func(l control.Link) bool { return control.ComponentKind(l.To) != control.KindMetricsServer })
}

func proxyEnvironment(p Ports, member string) string {
	proxy := url.URL{Scheme: "http", Host: hostPort(p[PeerProxy(member)])}
	return "HTTPS_PROXY=" + proxy.String()
}

// Ports maps each listener of a plane to its loopback port. A component's listener for clients has the
// component's name.
type Ports map[string]int

// Balancer is the name of the listener of the load balancer in front of several API servers.
const Balancer = "balancer"

// PeerListener returns the name of the listener of an etcd member for its peers. PeerProxy returns the name of the
// member's forward proxy to its peers. LinkListener returns the name of the listener through which an API server
// reaches a member or metrics-server.
func PeerListener(member string) string        { return member + "/peer" }
func PeerProxy(member string) string           { return member + "/proxy" }
func LinkListener(apiServer, to string) string { return apiServer + "/" + to }

// Listeners returns the names of all listeners of a plane with the config.
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
