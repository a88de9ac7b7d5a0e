package leadership

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/adminclient"
	"github.com/stormglass/stormglass/controlplane/internal/balancer"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// askWithin is the time limit for the responses of all components. A paused component never responds.
const askWithin = time.Second

// Roles calls the components of a plane to find their roles and the leader of each kind. It remembers the member names
// for etcd's member IDs. Its methods are safe for concurrent use.
type Roles struct {
	client      *adminclient.Client
	etcdMembers int

	mu sync.Mutex // guards names
	// names maps member IDs to names, because a paused member does not respond to a request for its name.
	names map[string]string
}

// NewRoles returns the Roles of a plane. etcdMembers is the number of all etcd members, including members that are not
// running.
func NewRoles(client *adminclient.Client, etcdMembers int) *Roles {
	return &Roles{client: client, etcdMembers: etcdMembers, names: map[string]string{}}
}

// Leader returns the name of the current leader of a kind of component. running returns the processes of a kind that
// have not ended.
func (r *Roles) Leader(ctx context.Context, kind string, running func(kind string) []topology.Process) (string, error) {
	switch kind {
	case control.KindEtcd:
		return r.etcdLeader(ctx, running(kind))
	case control.KindAPIServer:
		return "", fmt.Errorf("%s has no leader, because all its replicas are equal", kind)
	}
	if !elected(kind) {
		return "", fmt.Errorf("components of kind %q have no leader", kind)
	}
	return r.leaseHolder(ctx, kind, running(kind))
}

// etcdLeader calls all members at the same time, and waits until a quorum agrees or all members have responded. A
// paused member therefore does not delay a fault that needs the leader.
func (r *Roles) etcdLeader(ctx context.Context, running []topology.Process) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var mu sync.Mutex
	votes := Votes{Members: r.etcdMembers}
	var failure error
	forEach(running, func(etcd topology.Process) {
		s, err := r.etcdStatus(ctx, etcd)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failure = err
			return
		}
		// A quorum is not enough while the leader's name is unknown: only the leader's own response gives the name.
		if votes.Add(s.Leader, s.Term) && r.name(votes.Leader()) != "" {
			cancel()
		}
	})
	leader := votes.Leader()
	name := r.name(leader)
	switch {
	case name != "":
		return name, nil
	case leader == "" && failure == nil:
		return "", fmt.Errorf("etcd has no leader")
	case leader == "":
		return "", fmt.Errorf("etcd has no leader: %w", failure)
	}
	return "", fmt.Errorf("etcd's leader is member %s, which has not answered any request", leader)
}

// etcdStatus gets the status of one member and records the member's name for its ID.
func (r *Roles) etcdStatus(ctx context.Context, etcd topology.Process) (adminclient.EtcdStatus, error) {
	s, err := r.client.EtcdStatus(ctx, etcd)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.names[s.Header.MemberID] = etcd.Name
	}
	return s, err
}

// name returns the name of the member with an ID, or "" if that member has never responded.
func (r *Roles) name(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[id]
}

func elected(kind string) bool { return slices.Contains(control.ElectedKinds(), kind) }

func (r *Roles) leaseHolder(ctx context.Context, kind string, running []topology.Process) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var mu sync.Mutex
	var holders []string
	var failure error
	forEach(running, func(proc topology.Process) {
		leads, err := r.client.HoldsLease(ctx, proc)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failure = err
		}
		if leads {
			holders = append(holders, proc.Name)
			cancel() // there is only one leader: the other responses are not needed
		}
	})
	switch {
	case len(holders) > 0:
		return holders[0], nil
	case failure != nil:
		return "", fmt.Errorf("no instance of %s holds the lease: %w", kind, failure)
	}
	return "", fmt.Errorf("no %s holds the lease", kind)
}

func forEach(processes []topology.Process, ask func(topology.Process)) {
	var all sync.WaitGroup
	for _, proc := range processes {
		all.Go(func() { ask(proc) })
	}
	all.Wait()
}

// Fill calls all running components at the same time and sets their roles. A component that does not respond gets no
// role. lb is nil if there is only one API server.
func (r *Roles) Fill(ctx context.Context, components []control.ComponentStatus, lb *balancer.Balancer) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var all sync.WaitGroup
	for i := range components {
		if c := &components[i]; c.Exit == "" {
			all.Go(func() { r.fill(ctx, c) })
		}
	}
	all.Wait()
	if lb == nil {
		return
	}
	for _, s := range lb.States() {
		for i := range components {
			if c := &components[i]; c.Name == s.Name {
				c.Role, c.Connections = control.RoleOut, s.Connections
				if s.Ready {
					c.Role = control.RoleServing
				}
			}
		}
	}
}

func (r *Roles) fill(ctx context.Context, c *control.ComponentStatus) {
	proc := topology.Process{Name: c.Name, Kind: c.Kind, Address: c.Address}
	switch {
	case c.Kind == control.KindEtcd:
		s, err := r.etcdStatus(ctx, proc)
		if err != nil {
			return
		}
		c.Etcd = &control.EtcdStatus{Term: s.Term, DBSize: s.DBSize, DBInUse: s.DBInUse, Alarms: s.Errors}
		switch s.Leader {
		case "": // the member does not know the leader
		case s.Header.MemberID:
			c.Role = control.RoleLeader
		default:
			c.Role = control.RoleFollower
		}
	case elected(c.Kind):
		switch leads, err := r.client.HoldsLease(ctx, proc); {
		case err != nil:
		case leads:
			c.Role = control.RoleLeader
		default:
			c.Role = control.RoleStandby
		}
	}
}

// Votes determines etcd's leader from the responses of the members.
type Votes struct {
	// Members is the number of all members, including members that are not running.
	Members int

	leader string
	term   int64
	said   map[vote]int
}

type vote struct {
	leader string
	term   int64
}

// Add counts one member's response: the leader that the member knows ("" if the member knows no leader) and the term.
// settled reports whether a quorum has sent the same response. Then the other responses do not matter, because a leader
// of a newer term would have needed the vote of a member of that quorum.
func (v *Votes) Add(leader string, term int64) (settled bool) {
	if leader == "" {
		return false
	}
	if v.said == nil {
		v.said = map[vote]int{}
	}
	said := vote{leader, term}
	v.said[said]++
	if v.leader == "" || term > v.term {
		v.leader, v.term = leader, term
	}
	return v.said[said] > v.Members/2
}

// Leader returns the leader in the response with the newest term, or "" if no response has named a leader.
func (v *Votes) Leader() string { return v.leader }
