// Package controlplane runs a real Kubernetes control plane: etcd, kube-apiserver, kube-scheduler and
// kube-controller-manager, each a separate process under one supervisor, in one directory.
//
// Start locks the directory, creates the credentials, starts the processes in order and returns when all are ready. Run
// waits until the plane ends and stops the processes in reverse order. No process outlives the supervisor, however the
// supervisor ends.
//
// A Plane manages its directory, its state and the order of these steps. Packages below internal do the other work:
// supervisor manages the processes, readiness and leadership determine which components are ready and which lead,
// restore replaces etcd's data, and fault manages the active faults.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/leadership"
	"github.com/stormglass/stormglass/controlplane/internal/mirror"
	"github.com/stormglass/stormglass/controlplane/internal/readiness"
	"github.com/stormglass/stormglass/controlplane/internal/restore"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// Options describes the plane to start.
type Options struct {
	// Dir is the plane's directory. Start creates it if it does not exist. A plane in the directory of a stopped plane
	// reuses the data and credentials of that plane and, if they are free, its ports.
	Dir string
	// Config is the plane's configuration, which must be valid (Config.Problems). Defaults are the defaults that Check
	// returned for Config.
	Config   control.Config
	Defaults Defaults
	// Executable is the path of the multi-call binary that contains the components.
	Executable string
	// Progress receives progress messages, line by line. Start writes all its lines before it returns, but waits at
	// most one second for a writer that blocks.
	Progress io.Writer
	// Now is a channel. When it is closed, Start kills the processes of a plane that failed to start or was
	// interrupted, instead of stopping them gracefully. If Now is nil, Start always stops them gracefully.
	Now <-chan struct{}
	// PickPorts chooses a port for each listener. last holds the ports of the last start, with zero for a new listener.
	// If PickPorts is nil, the plane uses free loopback ports.
	PickPorts func(last topology.Ports) (topology.Ports, error)
}

// Plane is one control plane. Its methods are safe for concurrent use.
type Plane struct {
	opts       Options
	layout     topology.Layout
	dir        *directory
	started    time.Time
	messages   *messages
	server     *server
	events     fault.Events
	faults     *fault.Manager
	components *supervisor.Supervisor
	nodes      *mirror.Nodes // the control-plane nodes; nil before the plane is ready
	// closing ends when the plane begins to stop. lifetime ends when the plane's last process has stopped.
	closing, lifetime         context.Context
	beginClosing, endLifetime context.CancelFunc

	stopAsked   context.Context         // ends when a stop is requested through the control socket
	requestStop context.CancelCauseFunc // cancels stopAsked; the cause is errAsked or errAskedNow
	died        chan error              // receives the error that ends the plane, such as a failed restart

	// publishing serializes the writes of cluster.json, so that the newest version is written last. Lock it before mu.
	// Do not hold mu during the write: a fault may keep the disk busy, and ending that fault needs mu.
	publishing sync.Mutex
	// mu guards the fields below.
	mu          sync.Mutex
	state       control.State
	since       time.Time        // the time at which state began
	cause       string           // reason why the plane stops; empty while the plane does not stop
	cluster     *control.Cluster // description of the plane; nil before the plane is ready; replaced, never modified
	connections connections
}

var (
	errAsked    = errors.New("stop requested through the control socket")
	errAskedNow = errors.New("immediate stop requested through the control socket")
)

// Start starts a plane and returns when the plane is ready. On an error, or if ctx ends first, Start stops all
// processes. Unless a plane was ready in the directory before, Start then removes everything that it has created,
// except the logs if a component failed.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	if opts.PickPorts == nil {
		opts.PickPorts = PickPorts
	}
	p, err := newPlane(ctx, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// `down` also ends a plane that is still starting.
	defer context.AfterFunc(p.stopAsked, func() { cancel(errAsked) })()
	err = p.start(ctx)
	if err == nil {
		p.progress("%-26s ready after %.1f s", "the control plane", time.Since(p.started).Seconds())
		p.report(p.mirror())
		p.messages.flush()
		return p, nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted while starting: %w", context.Cause(ctx))
	} else if errors.As(err, new(*supervisor.ComponentError)) {
		p.dir.keepLogs = true
	}
	p.Stop(err, p.shutdownSignal(opts.Now))
	p.Release()
	return nil, err
}

func newPlane(ctx context.Context, opts Options) (*Plane, error) {
	dir, err := openDirectory(ctx, opts.Dir)
	if err != nil {
		return nil, err
	}
	p := &Plane{
		opts: opts, dir: dir, layout: topology.Layout{Dir: dir.path}, died: make(chan error, 1),
		started: time.Now(), state: control.Starting, since: time.Now(),
	}
	p.stopAsked, p.requestStop = context.WithCancelCause(context.WithoutCancel(ctx))
	p.closing, p.beginClosing = context.WithCancel(context.WithoutCancel(ctx))
	p.lifetime, p.endLifetime = context.WithCancel(context.WithoutCancel(ctx))
	host := &faultHost{plane: p}
	p.faults = fault.NewManager(host, &p.events)
	p.components, err = supervisor.New(supervisor.Plane{
		Layout: p.layout, Order: opts.Config.Components(), Lock: dir.lock, Closing: p.closing, Lifetime: p.lifetime,
		Events: &p.events, Faults: p.faults, Progress: p.progress,
		Ready: func(ctx context.Context, proc topology.Process, begun time.Time) error {
			return readiness.Check(ctx, p.connected().client, proc, begun)
		},
		InService: func(name string) bool { c := p.connected(); return c.inService(name) },
		Restarted: func() { p.report(p.publish()) },
		Fail:      p.fail,
	})
	if err != nil {
		dir.discard()
		return nil, err
	}
	host.Supervisor = p.components
	p.messages = newMessages(opts.Progress)
	return p, nil
}

func (p *Plane) start(ctx context.Context) (err error) {
	if p.server, err = serve(p); err != nil {
		return err
	}
	p.layout.Sockets = filepath.Dir(p.server.path)
	if err := control.SetHolder(p.dir.lock, control.Holder{PID: os.Getpid(), Socket: p.server.path}); err != nil {
		return err
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	go p.components.RotateLogs(p.lifetime)
	go leadership.FollowAll(p.opts.Config, p.layout).Report(p.lifetime, p.events.Append)
	if err := p.launchRetrying(ctx); err != nil {
		return err
	}
	if err := p.sweepWebhooks(ctx); err != nil {
		return err
	}
	return p.announce()
}

func (p *Plane) prepare(ctx context.Context) error {
	if p.dir.resumed {
		if err := fits(p.layout, p.opts.Config); err != nil {
			return err
		}
	}
	if err := checkResources(p.layout.Dir, p.opts.Config, p.dir.resumed); err != nil {
		return err
	}
	for _, d := range []string{p.layout.Bin(), p.layout.Logs(), p.layout.Kubeconfigs(), p.layout.Data("")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := p.messages.openLog(p.layout.Log(SupervisorLog)); err != nil {
		return err
	}
	if err := restore.FinishInterrupted(p.layout, p.opts.Config); err != nil {
		return err
	}
	if err := p.layout.PKI().Ensure(time.Now(), net.ParseIP(topology.ServiceIP)); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	for _, r := range releasesIn(p.opts.Config) {
		if err := p.linkRelease(ctx, r); err != nil {
			return err
		}
	}
	return linkPrograms(p.layout, p.opts.Executable)
}

// Run waits until the plane ends, and stops it. The plane ends when ctx ends, when a client stops it through the
// control socket, or when a component cannot be started again; only the last case is an error. If etcd has no quorum
// because members are dead, Run kills the other processes immediately, because an API server cannot shut down
// gracefully without etcd.
func (p *Plane) Run(ctx context.Context, now <-chan struct{}) error {
	select {
	case <-ctx.Done():
		p.Stop(context.Cause(ctx), p.shutdownSignal(now))
	case <-p.stopAsked.Done():
		p.Stop(errAsked, p.shutdownSignal(now))
	case err := <-p.died:
		p.Stop(err, p.shutdownSignal(now))
		return err
	}
	return nil
}

// Stop stops a plane for the reason `cause`. When the channel `now` is closed, Stop kills the processes that still run.
// In this order, it
//
//  0. stops the mirror nodes and undoes all faults;
//  1. stops the scheduler and the controller manager, so that they make no new decisions;
//  2. stops the API servers, so that no client writes new data;
//  3. stops etcd;
//  4. closes the load balancer and the links;
//  5. writes the last status to stopped.json, if a plane was ever ready in the directory;
//  6. closes the control socket;
//  7. removes everything that Start has created, if no plane was ever ready in the directory.
//
// The directory stays locked until Release or the end of this process. A process that waits for the lock (`down`)
// therefore also waits until the supervisor has ended.
func (p *Plane) Stop(cause error, now <-chan struct{}) {
	p.beginClosing()
	p.setState(control.Stopping, cause.Error())
	p.events.Append(control.Event{Kind: control.EventStopping, Detail: cause.Error()})
	p.progress("stopping: %s", cause)
	if p.nodes != nil {
		p.nodes.Stop()
	}
	p.undoFaults(now)
	p.components.StopAll(now)
	p.endLifetime()
	p.disconnect()
	p.setState(control.Stopped, cause.Error())
	p.events.Close()
	if p.dir.resumed {
		p.report(writeJSON(filepath.Join(p.layout.Dir, control.StoppedFile), p.Status()))
	}
	if p.server != nil {
		p.server.close()
	}
	p.components.Close()
	if !p.dir.resumed {
		p.dir.discard()
	}
	p.messages.close()
}

// Release unlocks the directory of a plane that has ended.
func (p *Plane) Release() { p.dir.release() }

// shutdownSignal returns the channel for Stop, which kills the processes when the channel is closed. It returns `now`,
// or a closed channel if a client requested an immediate stop or etcd has no quorum because members have died. An API
// server cannot shut down gracefully without a quorum of etcd.
func (p *Plane) shutdownSignal(now <-chan struct{}) <-chan struct{} {
	quorum := 2*p.components.Died(control.KindEtcd) < p.config().Count(control.KindEtcd)
	if context.Cause(p.stopAsked) != errAskedNow && quorum {
		return now
	}
	over := make(chan struct{})
	close(over)
	return over
}

const faultsWithin = 8 * time.Second

// undoFaults undoes all faults before the stop, because a paused process cannot stop and etcd keeps its alarms on disk.
func (p *Plane) undoFaults(now <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), faultsWithin)
	defer cancel()
	go func() {
		select {
		case <-now:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := p.faults.Close(ctx); err != nil {
		p.progress("could not undo faults: %v", err)
	}
}

func (p *Plane) fail(err error) {
	select {
	case p.died <- err:
	default:
	}
}

// setState changes the plane's state. Once the plane is stopping, a restore that is still running cannot change the
// state.
func (p *Plane) setState(s control.State, cause string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil && (s == control.Starting || s == control.Ready) {
		return
	}
	p.state, p.since, p.cause = s, time.Now(), cause
}

func (p *Plane) restorer() *restore.Restorer {
	c := p.connected()
	return &restore.Restorer{
		Components: p.components, Layout: p.layout, Etcd: c.plan.Of(control.KindEtcd), Closing: p.closing,
		DeleteLeases: c.client.DeleteLeases,
		SetState:     func(s control.State) { p.setState(s, "") },
		Publish:      p.publish, Fail: p.fail, Progress: p.progress, Report: p.report,
	}
}
