package control

import (
	"fmt"
	"strconv"
)

// The values of Etcd.Topology. Empty means EtcdStacked.
const (
	EtcdStacked  = "stacked"
	EtcdExternal = "external"
)

// The values of Config.NetworkFaults. Empty means on with several etcd members,
// else off.
const (
	NetworkFaultsOn  = "on"
	NetworkFaultsOff = "off"
)

// ComponentName names one process of a kind: "etcd-0".
func ComponentName(kind string, i int) string { return kind + "-" + strconv.Itoa(i) }

// Count returns the number of processes of a kind in a config.
func (c Config) Count(kind string) int {
	asked := 0
	switch kind {
	case KindEtcd:
		asked = c.Etcd.Members
	case KindAPIServer:
		asked = c.APIServer.Replicas
	case KindScheduler:
		asked = c.Scheduler.Replicas
	case KindControllerManager:
		asked = c.ControllerManager.Replicas
	default:
		return 0
	}
	return max(asked, 1)
}

// Components names all processes that a config asks for, in the order in which
// they start.
func (c Config) Components() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, c.ComponentsOf(kind)...)
	}
	return names
}

// ComponentsOf names the processes of one kind.
func (c Config) ComponentsOf(kind string) []string {
	var names []string
	for i := range c.Count(kind) {
		names = append(names, ComponentName(kind, i))
	}
	return names
}

// HasLinks reports whether the links between etcd's peers, and between API
// servers and etcd, go through proxies that can delay and cut them.
func (c Config) HasLinks() bool {
	switch c.NetworkFaults {
	case NetworkFaultsOn:
		return true
	case NetworkFaultsOff:
		return false
	}
	return c.Count(KindEtcd) > 1
}

// Bounds of a topology. Seven members are the most that etcd's documentation
// advises (FAQ, "What is maximum cluster size?"); an even number is a warning.
// More than 16 replicas are taken for a mistake.
const (
	maxMembers  = 7
	maxReplicas = 16
)

// The bounds of apiServer.descriptors: an API server at rest holds about a
// hundred, and the kernel's default bound of any limit is 1,048,576.
const (
	minAPIServerDescriptors = 256
	maxAPIServerDescriptors = 1 << 20
)

// topologyProblems checks what there is to be of each kind.
func (c Config) topologyProblems() []Problem {
	var all []Problem
	count := func(path string, n, high int, hint string) {
		if n < 0 || n > high {
			all = append(all, Problem{path, fmt.Sprintf("%d is out of bounds", n), hint})
		}
	}
	count("etcd.members", c.Etcd.Members, maxMembers, fmt.Sprintf("1, 3, 5 or %d; every member writes all that is written", maxMembers))
	count("apiServer.replicas", c.APIServer.Replicas, maxReplicas, fmt.Sprintf("from 1 to %d", maxReplicas))
	count("controllerManager.replicas", c.ControllerManager.Replicas, maxReplicas, fmt.Sprintf("from 1 to %d: one leads, the others wait", maxReplicas))
	count("scheduler.replicas", c.Scheduler.Replicas, maxReplicas, fmt.Sprintf("from 1 to %d: one leads, the others wait", maxReplicas))
	if n := c.APIServer.Descriptors; n != 0 && (n < minAPIServerDescriptors || n > maxAPIServerDescriptors) {
		all = append(all, Problem{"apiServer.descriptors", fmt.Sprintf("%d is out of bounds", n),
			fmt.Sprintf("from %d, below which an API server does not start, to %d; 0 is this machine's limit", minAPIServerDescriptors, maxAPIServerDescriptors)})
	}
	switch c.Etcd.Topology {
	case "", EtcdStacked, EtcdExternal:
	default:
		all = append(all, Problem{"etcd.topology", fmt.Sprintf("%q is no topology", c.Etcd.Topology), "stacked or external"})
	}
	switch c.NetworkFaults {
	case "", NetworkFaultsOn, NetworkFaultsOff:
	default:
		all = append(all, Problem{"networkFaults", fmt.Sprintf("%q is no setting", c.NetworkFaults), "on or off"})
	}
	return all
}

// Warnings lists settings that work but are unwise.
func (c Config) Warnings() []Problem {
	n := c.Count(KindEtcd)
	if n%2 != 0 {
		return nil
	}
	return []Problem{{
		Path: "etcd.members",
		Msg:  fmt.Sprintf("a quorum of %d members is %d, so %d may be lost: no more than of %d", n, n/2+1, (n-1)/2, n-1),
		Hint: fmt.Sprintf("take %d, or %d, of which %d may be lost", n-1, n+1, n/2),
	}}
}
