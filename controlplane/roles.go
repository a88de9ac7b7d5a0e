package controlplane

import (
	"context"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// askWithin bounds how long a component may take to say what it is: one that is
// paused never does.
const askWithin = time.Second

// askRoles asks all components at once and fills in what they say. Those that
// do not answer stay without a role.
func (p *Plane) askRoles(ctx context.Context, components []control.ComponentStatus) {
	p.mu.Lock()
	probe, lb := p.probe, p.ways.balancer
	p.mu.Unlock()
	var all sync.WaitGroup
	for i := range components {
		c := &components[i]
		if c.Exit != "" {
			continue
		}
		switch c.Kind {
		case control.KindEtcd:
			all.Go(func() { p.askEtcd(ctx, c) })
		case control.KindScheduler, control.KindControllerManager:
			all.Go(func() {
				m, _, err := p.member(c.Name)
				if err != nil {
					return
				}
				switch leads, err := probe.leads(ctx, m.process); {
				case err != nil:
				case leads:
					c.Role = control.RoleLeader
				default:
					c.Role = control.RoleStandby
				}
			})
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

func (p *Plane) askEtcd(ctx context.Context, c *control.ComponentStatus) {
	m, _, err := p.member(c.Name)
	if err != nil {
		return
	}
	s, err := p.probe.etcdStatus(ctx, m.process)
	if err != nil {
		return
	}
	p.knowMember(s.Header.MemberID, c.Name)
	c.Etcd = &control.EtcdStatus{Term: s.Term, DBSize: s.DBSize, DBInUse: s.DBInUse, Alarms: s.Errors}
	switch s.Leader {
	case "", "0": // it knows none
	case s.Header.MemberID:
		c.Role = control.RoleLeader
	default:
		c.Role = control.RoleFollower
	}
}
