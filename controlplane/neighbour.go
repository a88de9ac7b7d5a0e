package controlplane

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/disk"
	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// neighbourGrace is how long writers may take to end: each completes the fsync
// that it is in, on a disk that is as busy as they made it.
const neighbourGrace = 10 * time.Second

// neighbourDir is where writers write: on the disk of a stacked etcd, on
// another one than an external etcd's.
func (p *Plane) neighbourDir() (string, error) {
	data := p.layout.Data("")
	if p.opts.Config.Etcd.Topology == control.EtcdExternal {
		return disk.OtherFileSystem(data)
	}
	return data, nil
}

// Available says why no fault can begin now.
func (p *Plane) Available() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != control.Ready {
		return fmt.Errorf("the plane is %s", p.state)
	}
	return nil
}

// NeighbourAvailable says what this machine lacks for a neighbour.
func (p *Plane) NeighbourAvailable() error {
	_, err := p.neighbourDir()
	return err
}

// Neighbour starts writers, as a process of their own: that costs 80 ms of CPU time,
// nearly all of it what Kubernetes' packages do before any main function.
func (p *Plane) Neighbour(ctx context.Context, writers int, size int64, lost func(error)) (stop func(context.Context) error, err error) {
	dir, err := p.neighbourDir()
	if err != nil {
		return nil, err
	}
	child, err := p.spawner.Start(process.Spec{
		Name: disk.Program,
		Path: p.layout.Program(disk.Program),
		Args: append([]string{disk.Program}, disk.Args(disk.Options{Dir: dir, Writers: writers, Size: size})...),
		// It needs next to no memory, but the program that it is a part of makes so much
		// as it starts that collecting it is a third of the start's CPU time.
		Env:  append(environment(), "GOGC=off"),
		Log:  p.layout.Log(disk.Program),
		Hold: p.dir.lock,
	})
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
			return nil, fmt.Errorf("%s does not write yet: %w", child.Name, context.Cause(ctx))
		case <-tick.C:
		}
	}
	go func() { // it ends with the process
		<-child.Done()
		if !stopped.Load() {
			lost(ended())
		}
	}()
	return stop, nil
}
