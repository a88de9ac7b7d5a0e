package controlplane

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// member is one component and what is known of its process.
type member struct {
	process topology.Process
	order   int        // its place among all
	change  sync.Mutex // held while it is ended or started
	// What follows is guarded by Plane.mu.
	*life
	restarts int
	crashes  int       // ends in a row that a fault has caused
	revived  time.Time // when it was last started after such an end
}

// life is one process of a member, from its start to after its end.
type life struct {
	child      *process.Child
	over       control.Flags // what was laid over the member's flags
	flags      []string      // what it was started with
	agent      *fsync.Agent  // of an etcd member
	ready      bool
	readyAfter time.Duration
	serves     chan struct{} // closed when it is ready
	// expected tells that its end was asked for, or is a fault's doing: it is not the
	// plane's. claimed tells that a fault has ended it, or taken it over when it had
	// ended by itself, and that its next start is that fault's.
	expected, claimed bool
	// oomKills is what process.OOMKills said at its start.
	oomKills uint64
}

// ended tells whether the process is gone.
func (l *life) ended() bool {
	select {
	case <-l.child.Done():
		return true
	default:
		return false
	}
}

// ending tells how the process ended. Ask when it has.
func (l *life) ending() string { return ending(l.child.Exit(), process.OOMKills()-l.oomKills) }

// ending tells how a process ended in whose time the kernel has killed processes
// for want of memory: one of so many may be this one. The kernel says which only to
// those who may read its log.
func ending(exit process.Exit, oomKills uint64) string {
	if exit.Signal != syscall.SIGKILL.String() || oomKills == 0 {
		return exit.String()
	}
	return fmt.Sprintf("%s (the machine ran out of memory: its kernel has killed %d since this process was started)", exit, oomKills)
}

// startMember starts a process for the first time.
func (p *Plane) startMember(proc topology.Process) (*member, error) {
	m := &member{process: proc, order: slices.Index(p.opts.Config.Components(), proc.Name)}
	l, err := p.spawn(m, nil)
	if err != nil {
		return nil, err
	}
	m.life = l
	p.mu.Lock()
	p.members = append(p.members, m)
	slices.SortFunc(p.members, func(a, b *member) int { return cmp.Compare(a.order, b.order) }) // some start at once
	p.mu.Unlock()
	return m, nil
}

// spawn starts a member's process, with flags laid over its own.
func (p *Plane) spawn(m *member, over control.Flags) (*life, error) {
	spec := process.Spec{
		Name:        m.process.Name,
		Path:        p.layout.Program(m.process.Kind),
		Env:         append(environment(), m.process.Env...),
		Log:         p.layout.Log(m.process.Name),
		Hold:        p.dir.lock,
		Descriptors: m.process.Descriptors,
	}
	l := &life{over: over, flags: topology.Overlay(m.process.Args, over), serves: make(chan struct{}), oomKills: process.OOMKills()}
	spec.Args = append([]string{m.process.Kind}, l.flags...)
	if m.process.Kind == control.KindEtcd {
		agent, end, err := fsync.NewAgent()
		switch {
		case err == nil:
			defer end.Close()
			l.agent, spec.Agent, spec.AgentEnv = agent, end, fsync.AgentEnv
		case !errors.Is(err, fsync.ErrUnavailable): // then a fault that needs it says so
			return nil, err
		}
	}
	child, err := p.spawner.Start(spec)
	if err != nil {
		if l.agent != nil {
			l.agent.Close()
		}
		return nil, err
	}
	l.child = child
	return l, nil
}

// watch tells of the end of a process, which is the plane's end unless it was
// asked for, or is a fault's doing.
func (p *Plane) watch(m *member, l *life) {
	<-l.child.Done()
	if l.agent != nil {
		l.agent.Close()
	}
	p.mu.Lock()
	expected := l.expected
	p.mu.Unlock()
	how := l.child.Exit().String()
	if !expected {
		how = l.ending()
	}
	p.events.Tell(control.Event{
		Time: l.child.Exit().At, Kind: control.EventExit, Component: m.process.Name, Detail: how, Expected: expected,
	})
	if !expected && !p.restart(m, l) {
		p.fail(p.diedError(m.process.Name, l))
	}
}

// environment is what a component inherits: nothing that could change its
// flags (etcd reads ETCD_*) or its clients (KUBECONFIG, proxies).
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch upper := strings.ToUpper(name); {
		case strings.HasPrefix(upper, "ETCD"), strings.HasPrefix(upper, "KUBE"), strings.HasSuffix(upper, "_PROXY"), strings.HasPrefix(upper, "STORMGLASS_"):
			return true
		default:
			return upper == "NOTIFY_SOCKET" // systemd's, meant for the supervisor
		}
	})
}
