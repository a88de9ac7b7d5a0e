package controlplane

import (
	"os"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Status is the plane's state now. While the plane is ready its components are
// asked for their roles, which takes up to a second.
func (p *Plane) Status() control.Status {
	p.mu.Lock()
	s := control.Status{
		Schema: control.StatusSchema, Dir: p.layout.Dir, State: p.state, Since: p.since,
		Cause: p.cause, SupervisorPID: os.Getpid(), Cluster: p.cluster,
	}
	c := p.connections
	p.mu.Unlock()
	s.Components = p.components.Status()
	for _, f := range p.faults.List() {
		if f.Ended.IsZero() {
			s.Faults = append(s.Faults, f)
		}
	}
	if s.State == control.Ready {
		c.roles.Fill(p.lifetime, s.Components, c.balancer)
	}
	return s
}
