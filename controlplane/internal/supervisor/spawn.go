package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// spawn starts a process of a component, with flags that replace its own.
func (s *Supervisor) spawn(c *component, overlay control.Flags) (*instance, error) {
	i := &instance{overlay: overlay, flags: topology.Overlay(c.process.Args, overlay), serves: make(chan struct{}), oomKills: process.OOMKills()}
	spec := s.spec(c.process.Name, c.process.Kind, c.process.Env, i.flags)
	spec.Descriptors = c.process.Descriptors
	if c.process.Kind == control.KindEtcd {
		agent, end, err := fsync.NewAgent()
		switch {
		case err == nil:
			defer end.Close()
			i.agent, spec.Agent, spec.AgentEnv = agent, end, fsync.AgentEnv
		case !errors.Is(err, fsync.ErrUnavailable): // a fault that needs the agent is refused instead
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

// StartTool starts a program of the plane's bin directory that is no component, with
// additions to its environment.
func (s *Supervisor) StartTool(env []string, name string, args ...string) (*process.Child, error) {
	return s.spawner.Start(s.spec(name, name, env, args))
}

// RunTool runs one of etcd's tools to its end. The error is the tool's own.
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

// environment returns the variables that a process inherits: none that could change a component's
// flags (etcd reads ETCD_*) or its clients (KUBECONFIG, proxies).
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch upper := strings.ToUpper(name); {
		case strings.HasPrefix(upper, "ETCD"), strings.HasPrefix(upper, "KUBE"), strings.HasSuffix(upper, "_PROXY"), strings.HasPrefix(upper, "STORMGLASS_"):
			return true
		default:
			return upper == "NOTIFY_SOCKET" // systemd's, for the supervisor alone
		}
	})
}
