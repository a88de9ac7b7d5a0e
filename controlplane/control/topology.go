package control

import (
	"fmt"
	"strconv"
	"strings"
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
	asked, known := map[string]int{
		KindEtcd: c.Etcd.Members, KindAPIServer: c.APIServer.Replicas,
		KindScheduler: c.Scheduler.Replicas, KindControllerManager: c.ControllerManager.Replicas,
	}[kind]
	if !known {
		return 0
	}
	return max(asked, 1)
}

// Components names all processes that a config asks for, in the order in which they start.
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

// The kinds of component, which are also the names of their programs.
const (
	KindEtcd              = "etcd"
	KindAPIServer         = "kube-apiserver"
	KindScheduler         = "kube-scheduler"
	KindControllerManager = "kube-controller-manager"
)

// Kinds lists the kinds of component in the order in which they start.
func Kinds() []string {
	return []string{KindEtcd, KindAPIServer, KindScheduler, KindControllerManager}
}

// The roles of a Selector.
const (
	// RoleLeader is the leader of etcd's members, or the one of the replicas that holds the lease.
	RoleLeader = "leader"
	// RoleFollower is one of the others: the first by name that no other fault has stopped.
	RoleFollower = "follower"
)

// Selector says which components of a plane are meant.
type Selector struct {
	// Kind of the components.
	Kind string
	// Role is RoleLeader, RoleFollower or empty.
	Role string
	// Name of one component. With neither name nor role, all of the kind are meant.
	Name string
	// Index is the number in Name.
	Index int
}

// ParseSelector reads "etcd" (all members), "etcd-0", "etcd-leader" or
// "etcd-follower", and the like of the other kinds. API servers are equals and
// have no roles.
func ParseSelector(text string) (Selector, bool) {
	for _, kind := range Kinds() {
		if text == kind {
			return Selector{Kind: kind}, true
		}
		rest, ok := strings.CutPrefix(text, kind+"-")
		if !ok {
			continue
		}
		if rest == RoleLeader || rest == RoleFollower {
			return Selector{Kind: kind, Role: rest}, kind != KindAPIServer
		}
		i, err := strconv.Atoi(rest)
		return Selector{Kind: kind, Name: text, Index: i}, err == nil && i >= 0 && text == ComponentName(kind, i)
	}
	return Selector{}, false
}

// ComponentKind is the kind of a component by its name, or "".
func ComponentKind(name string) string {
	if s, ok := ParseSelector(name); ok && s.Name != "" {
		return s.Kind
	}
	return ""
}
