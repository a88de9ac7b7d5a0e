package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/readiness"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

type component struct {
	process topology.Process
	order   int // index of the component in Plane.Order
	// change must be locked while a caller stops or starts the process. Lock it before Supervisor.mu, which guards the
	// fields below.
	change sync.Mutex
	*instance
	last     *instance // the previous instance, from before the last restart, or nil
	restarts int
	crashes  int // number of consecutive unexpected exits
}

// instance is one process of a component and its state. The Supervisor keeps it after the process has ended, until a
// new process replaces it.
type instance struct {
	child    *process.Child
	flags    []string      // the flags with which the process was started
	overlay  control.Flags // the flags that the last call of Start passed; they override the component's own flags
	agent    *fsync.Agent  // the fsync agent of an etcd member; otherwise nil
	oomKills uint64        // value of process.OOMKills when the process was started
	serves   chan struct{} // closed when the process is ready
	// ready and the fields below are guarded by Supervisor.mu.
	ready      bool
	readyAfter time.Duration
	// expected reports whether the plane has ended the process or is restarting it. claimed reports whether a fault or
	// a restore has ended the process or has taken over its restart. Then only the fault or the restore starts the
	// component again.
	expected, claimed bool
}

func (s *Supervisor) find(name string) (*component, *instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		if c.process.Name == name {
			return c, c.instance, nil
		}
	}
	return nil, nil, fmt.Errorf("this control plane has no %s", name)
}

// running returns the instance of a component, or an error if the instance's process has ended.
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

// Running returns the processes of the given kind that have not ended.
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

// Died returns the number of components of the given kind that have ended unexpectedly and are not running again. It
// does not count components that a fault or a restore has ended.
func (s *Supervisor) Died(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		if c.process.Kind == kind && c.child.Ended() && !c.claimed {
			n++
		}
	}
	return n
}

// Components returns the description of all components for cluster.json.
func (s *Supervisor) Components() (all []control.Component) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		all = append(all, control.Component{
			Name: c.process.Name, Kind: c.process.Kind, PID: c.child.PID, Started: c.child.Started,
			Args: c.flags, Log: s.plane.Layout.Log(c.process.Name), Scrape: c.process.Scrape, ReadyAfter: c.readyAfter,
			Version: c.process.Release.VersionOf(c.process.Kind),
		})
	}
	return all
}

// Snapshot describes a component's current process, and its previous process, at one moment.
type Snapshot struct {
	Name, Kind string
	// Release is the release of the component's program.
	Release control.Release
	// Args are the flags with which the process was started. Log is the file of its output. Address is the URL at which
	// it serves.
	Args     []string
	Log      string
	Address  string
	Ready    bool
	Restarts int
	Child    *process.Child
	Last     *process.Child // the previous process; nil if the component was never restarted
}

// Snapshots returns a Snapshot of each component. It reads no files.
func (s *Supervisor) Snapshots() (all []Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		snapshot := Snapshot{
			Name: c.process.Name, Kind: c.process.Kind, Release: c.process.Release, Args: c.flags, Log: s.plane.Layout.Log(c.process.Name),
			Address: c.process.Address, Ready: c.ready && !c.child.Ended(), Restarts: c.restarts, Child: c.child,
		}
		if c.last != nil {
			snapshot.Last = c.last.child
		}
		all = append(all, snapshot)
	}
	return all
}

// Status returns the status of all components and the resource usage of their processes. It does not call the components.
func (s *Supervisor) Status() (all []control.ComponentStatus) {
	s.mu.Lock()
	for _, c := range s.components {
		status := control.ComponentStatus{
			Name: c.process.Name, Kind: c.process.Kind, PID: c.child.PID, Address: c.process.Address,
			Log: s.plane.Layout.Log(c.process.Name), Started: c.child.Started, Ready: c.ready, ReadyAfter: c.readyAfter,
			Restarts: c.restarts, Version: c.process.Release.VersionOf(c.process.Kind),
		}
		if c.child.Ended() {
			status.Exit, status.CPU, status.Ready = c.child.Exit().String(), c.child.Exit().CPU, false
		}
		all = append(all, status)
	}
	s.mu.Unlock() // unlock before reading /proc, because faults need mu
	for i := range all {
		if c := &all[i]; c.Exit == "" {
			u := process.ReadUsage(c.PID)
			c.CPU, c.RSS, c.Shared, c.OpenFiles = u.CPU, u.RSS, u.Shared, u.OpenFiles
		}
	}
	return all
}

func (s *Supervisor) spawn(c *component, overlay control.Flags) (*instance, error) {
	i := &instance{overlay: overlay, flags: topology.Overlay(c.process.Args, overlay), serves: make(chan struct{}), oomKills: process.OOMKills()}
	spec := s.spec(c.process.Name, c.process.Kind, c.process.Env, i.flags)
	if slices.Contains(control.VersionedKinds(), c.process.Kind) {
		spec.Path = s.plane.Layout.ProgramOf(c.process.Release, c.process.Kind)
	}
	spec.Descriptors = c.process.Descriptors
	if c.process.Kind == control.KindEtcd {
		agent, end, err := fsync.NewAgent()
		switch {
		case err == nil:
			defer end.Close()
			i.agent, spec.Agent, spec.AgentEnv = agent, end, fsync.AgentEnv
		case !errors.Is(err, fsync.ErrUnavailable): // without an agent, the plane runs, but refuses the faults that need it
			return nil, err
		}
	}
	child, err := s.spawner.Start(spec)
	if err != nil {
		if i.agent != nil {
			i.agent.Close()
		}
		return nil, err
	}
	i.child = child
	return i, nil
}

// StartTool starts a program of the plane's bin directory that is not a component. It adds env to the environment of
// the program.
func (s *Supervisor) StartTool(env []string, name string, args ...string) (*process.Child, error) {
	return s.spawner.Start(s.spec(name, name, env, args))
}

// RunTool runs one of etcd's tools until it ends. The error contains the error message of the tool.
func (s *Supervisor) RunTool(ctx context.Context, env []string, name string, args ...string) error {
	child, err := s.StartTool(env, name, args...)
	if err != nil {
		return err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		child.Stop(0, nil)
		return context.Cause(ctx)
	}
	if exit := child.Exit(); exit.Code != 0 {
		lines := child.LastLines(8)
		for _, line := range lines {
			if message, found := strings.CutPrefix(line, "Error: "); found {
				return errors.New(message)
			}
		}
		return fmt.Errorf("%s %s: %s", name, exit, strings.Join(lines, " "))
	}
	return nil
}

func (s *Supervisor) spec(name, program string, env, args []string) process.Spec {
	return process.Spec{
		Name: name, Path: s.plane.Layout.Program(program), Args: append([]string{program}, args...),
		Env: append(environment(), env...), Log: s.plane.Layout.Log(name), Hold: s.plane.Lock,
	}
}

// environment returns the environment variables that a process inherits. It leaves out variables that could change a
// component's flags (etcd reads ETCD_*) or its clients (KUBECONFIG, proxies).
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch upper := strings.ToUpper(name); {
		case strings.HasPrefix(upper, "ETCD"), strings.HasPrefix(upper, "KUBE"), strings.HasSuffix(upper, "_PROXY"), strings.HasPrefix(upper, "STORMGLASS_"):
			return true
		default:
			return upper == "NOTIFY_SOCKET" // systemd sets it for the supervisor only
		}
	})
}

// The following methods implement the part of fault.Host that acts on the process of one component.

func (s *Supervisor) Signal(name string, signal os.Signal) error {
	i, err := s.running(name)
	if err != nil {
		return err
	}
	return i.child.Signal(signal)
}

func (s *Supervisor) SetLimit(name string, of fault.Rlimit, soft uint64) (was uint64, err error) {
	i, err := s.running(name)
	if err != nil {
		return 0, err
	}
	return fault.SetLimit(i.child.PID, of, soft)
}

func (s *Supervisor) Fsync(name string) (fault.Fsync, error) {
	i, err := s.running(name)
	if err != nil {
		return nil, err
	}
	if i.agent == nil {
		return nil, fmt.Errorf("%s has no fsync agent (only etcd members on Linux have one)", name)
	}
	return i.agent, nil
}

func (s *Supervisor) Kill(ctx context.Context, name string) error {
	return s.end(ctx, name, func(c *process.Child) {
		_ = c.Signal(syscall.SIGKILL) // an error means that the process has already ended
		select {
		case <-c.Done():
		case <-ctx.Done():
		}
	})
}

// Stop ends a component with SIGTERM, and with SIGKILL when the component's grace period is over. Stop returns when the
// process has ended. The exit counts as expected, and nothing restarts the component.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	return s.end(ctx, name, func(c *process.Child) { c.Stop(stopGrace(control.ComponentKind(name)), ctx.Done()) })
}

func (s *Supervisor) end(ctx context.Context, name string, how func(*process.Child)) error {
	c, _, err := s.find(name)
	if err != nil {
		return err
	}
	c.change.Lock()
	defer c.change.Unlock()
	s.mu.Lock()
	i := c.instance
	i.expected, i.claimed = true, true
	s.mu.Unlock()
	if !i.child.Ended() {
		how(i.child)
	}
	if !i.child.Ended() {
		return fmt.Errorf("end %s: %w", name, ctx.Err())
	}
	return nil
}

// Replace sets the process that a component runs after its next start, for example a process with the program of
// another release.
func (s *Supervisor) Replace(proc topology.Process) error {
	c, _, err := s.find(proc.Name)
	if err != nil {
		return err
	}
	c.change.Lock()
	defer c.change.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	c.process = proc
	return nil
}

// Start starts a component that was killed or stopped, with the same ports and data. `flags` override the component's
// own flags of the same names, also after an automatic restart, until the next call of Start. Start returns when the
// process has started.
func (s *Supervisor) Start(_ context.Context, name string, flags control.Flags) error {
	c, _, err := s.find(name)
	if err != nil {
		return err
	}
	c.change.Lock()
	defer c.change.Unlock()
	if _, err := s.running(name); err == nil {
		return nil
	}
	return s.startAgain(c, flags)
}

func (s *Supervisor) AwaitReady(ctx context.Context, name string) error {
	i, err := s.running(name)
	if err != nil {
		return err
	}
	serves := i.serves
	tick := time.NewTicker(readiness.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-serves:
			serves = nil // the loop then only checks InService
		case <-tick.C:
		case <-i.child.Done():
			return fmt.Errorf("%s %s before it was ready%s", name, i.ending(), s.quoteLog(i))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", name, context.Cause(ctx))
		}
		if serves == nil && s.plane.InService(name) {
			return nil
		}
	}
}
