package controlplane

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/fault/disk"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/service"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
)

type faultHost struct {
	*supervisor.Supervisor
	plane *Plane
}

var _ fault.Host = (*faultHost)(nil)

func (h *faultHost) Config() control.Config { return h.plane.config() }

func (h *faultHost) Kubeconfig() string { return h.plane.layout.Kubeconfig(pki.Admin) }

func (h *faultHost) Available() error {
	h.plane.mu.Lock()
	defer h.plane.mu.Unlock()
	if h.plane.state != control.Ready {
		return fmt.Errorf("the plane is %s", h.plane.state)
	}
	return nil
}

func (h *faultHost) NeighbourAvailable() error {
	_, err := h.neighbourDir()
	return err
}

func (h *faultHost) Leader(ctx context.Context, kind string) (string, error) {
	return h.plane.connected().roles.Leader(ctx, kind, h.Running)
}

func (h *faultHost) Links() []fault.Link { return h.plane.connected().links }

func (h *faultHost) Etcd(ctx context.Context, name, path string, in, out any) error {
	c := h.plane.connected()
	for _, etcd := range c.plan.Of(control.KindEtcd) {
		if etcd.Name == name {
			return c.client.CallEtcd(ctx, etcd, path, in, out)
		}
	}
	return fmt.Errorf("this control plane has no %s", name)
}

func (h *faultHost) SetBehaviour(ctx context.Context, name string, b service.Behaviour) error {
	for _, proc := range h.Running(control.ComponentKind(name)) {
		if proc.Name == name {
			return h.plane.connected().client.SetBehaviour(ctx, proc, b)
		}
	}
	return fmt.Errorf("%s: %w", name, fault.ErrNotRunning)
}

func (h *faultHost) RotateKey(ctx context.Context, kind string) error {
	if err := h.plane.layout.PKI().AddKey(kind); err != nil {
		return err
	}
	if kind != control.KindOIDCIssuer {
		return nil
	}
	c := h.plane.connected()
	return h.plane.issueOIDCToken(ctx, c.client, c.plan.Of(kind)[0])
}

func (h *faultHost) Rehearse(ctx context.Context) error {
	return h.plane.restorer().Rehearse(ctx, h.plane.Cluster().Etcd)
}

// neighbourGrace is the maximum time that the disk writers of the disk-contention fault may take to end. Each writer
// first completes its fsync, which can be slow because all writers load the disk.
const neighbourGrace = 10 * time.Second

// neighbourDir returns the directory in which the disk writers write. It is on etcd's disk if etcd is stacked, and on
// another file system if etcd is external.
func (h *faultHost) neighbourDir() (string, error) {
	data := h.plane.layout.Data("")
	if h.Config().Etcd.Topology == control.EtcdExternal {
		return disk.OtherFileSystem(data)
	}
	return data, nil
}

// Neighbour starts the disk writers in a separate process and returns when they write. It calls `lost` if the process
// ends before the caller calls `stop`. The start costs 80 ms of CPU time, mostly to initialize the linked Kubernetes
// packages.
func (h *faultHost) Neighbour(ctx context.Context, writers int, size int64, lost func(error)) (stop func(context.Context) error, err error) {
	dir, err := h.neighbourDir()
	if err != nil {
		return nil, err
	}
	// Turn garbage collection off: the process needs little memory, and a collection would take a third of the CPU time
	// of the start.
	child, err := h.StartTool([]string{"GOGC=off"}, disk.Program, disk.Args(disk.Options{Dir: dir, Writers: writers, Size: size})...)
	if err != nil {
		return nil, err
	}
	var stopped atomic.Bool
	stop = func(ctx context.Context) error {
		stopped.Store(true)
		child.Stop(neighbourGrace, ctx.Done())
		return nil
	}
	ended := func() error {
		return fmt.Errorf("%s %s: %s", child.Name, child.Exit(), strings.Join(child.LastLines(1), ""))
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(child.Output(), disk.ReadyLine) {
		select {
		case <-child.Done():
			return nil, ended()
		case <-ctx.Done():
			_ = stop(ctx)
			return nil, fmt.Errorf("%s has not started to write: %w", child.Name, context.Cause(ctx))
		case <-tick.C:
		}
	}
	go func() { // returns when the process ends
		<-child.Done()
		if !stopped.Load() {
			lost(ended())
		}
	}()
	return stop, nil
}
