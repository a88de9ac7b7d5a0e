package topology

import (
	"github.com/stormglass/stormglass/controlplane/control"
)

// Ports are the loopback ports of a plane, by listener. A component's name
// stands for where its clients reach it.
type Ports map[string]int

// Balancer names the listener of the load balancer before several API servers.
const Balancer = "balancer"

// PeerListener names the listener of a member for its peers.
func PeerListener(member string) string { return member + "/peer" }

// PeerProxy names the listener of the forward proxy through which a member
// reaches its peers.
func PeerProxy(member string) string { return member + "/proxy" }

// LinkListener names the listener through which an API server reaches a member.
func LinkListener(apiServer, member string) string { return apiServer + "/" + member }

// Listeners names everything in a plane that listens on a port of its own.
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
	return names
}
