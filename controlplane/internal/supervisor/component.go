package supervisor

import (
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// component is one component of the plane and the state of its process.
type component struct {
	process topology.Process
	order   int // its index in Plane.Order
	// change is held while its process is ended or started. It is taken before
	// Supervisor.mu, which guards what follows.
	change sync.Mutex
	*instance
	restarts int
	crashes  int       // ends in a row under a fault
	revived  time.Time // when it was last restarted after such an end
}

// instance is one process of a component, from its start to after its end.
type instance struct {
	child    *process.Child
	flags    []string      // with which it was started
	overlay  control.Flags // those of them that replace the component's own
	agent    *fsync.Agent  // of an etcd member; nil where there is none
	oomKills uint64        // process.OOMKills at its start
	serves   chan struct{} // closed when it is ready
	// What follows is guarded by Supervisor.mu.
	ready      bool
	readyAfter time.Duration
	// expected is true when its end was asked for or is due to a fault: it does not
	// end the plane. claimed is true when a fault has ended it, or has taken over its
	// restart: no other restart is due.
	expected, claimed bool
}

// find returns a component and its instance of now.
func (s *Supervisor) find(name string) (*component, *instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		if c.process.Name == name {
			return c, c.instance, nil
		}
	}
	return nil, nil, fmt.Errorf("this plane has no %s", name)
}

// running returns a component's instance, which must not have ended.
func (s *Supervisor) running(name string) (*instance, error) {
	_, i, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if i.child.Ended() {
		return nil, fmt.Errorf("%s %w: it %s", name, fault.ErrNotRunning, i.ending())
	}
	return i, nil
}

// Running returns the processes of a kind that have not ended.
func (s *Supervisor) Running(kind string) (all []topology.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		if c.process.Kind == kind && !c.child.Ended() {
			all = append(all, c.process)
		}
	}
	return all
}

// Died reports whether a component of a kind has ended unexpectedly.
func (s *Supervisor) Died(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		if c.process.Kind == kind && c.child.Ended() && !c.expected {
			return true
		}
	}
	return false
}

// Components describes all components for cluster.json.
func (s *Supervisor) Components() (all []control.Component) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		all = append(all, control.Component{
			Name: c.process.Name, Kind: c.process.Kind, PID: c.child.PID, Started: c.child.Started,
			Args: c.flags, Log: s.plane.Layout.Log(c.process.Name), Scrape: c.process.Scrape, ReadyAfter: c.readyAfter,
		})
	}
	return all
}

// Status describes all components and what their processes use, without calling them.
func (s *Supervisor) Status() (all []control.ComponentStatus) {
	s.mu.Lock()
	for _, c := range s.components {
		status := control.ComponentStatus{
			Name: c.process.Name, Kind: c.process.Kind, PID: c.child.PID, Address: c.process.Address,
			Log: s.plane.Layout.Log(c.process.Name), Started: c.child.Started, Ready: c.ready, ReadyAfter: c.readyAfter,
			Restarts: c.restarts,
		}
		if c.child.Ended() {
			status.Exit, status.CPU, status.Ready = c.child.Exit().String(), c.child.Exit().CPU, false
		}
		all = append(all, status)
	}
	s.mu.Unlock() // before files of the kernel are read: faults wait for mu
	for i := range all {
		if c := &all[i]; c.Exit == "" {
			u := process.ReadUsage(c.PID)
			c.CPU, c.RSS, c.Shared, c.OpenFiles = u.CPU, u.RSS, u.Shared, u.OpenFiles
		}
	}
	return all
}
