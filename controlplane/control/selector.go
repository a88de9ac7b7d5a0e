package control

import (
	"strconv"
	"strings"
)

// The roles of a Selector.
const (
	// RoleLeader is the leader of etcd's members, or the one of the replicas
	// that holds the lease.
	RoleLeader = "leader"
	// RoleFollower is one of the others: the first by name that no other fault has
	// stopped.
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
