// Package controlplane runs a real Kubernetes control plane: etcd,
// kube-apiserver, kube-scheduler and kube-controller-manager, each a process
// of its own under one supervisor, in one directory.
//
// A Plane's life: Start takes the directory's lock, makes keys, starts the
// processes in order and returns when all are ready; Run waits for the end;
// the processes are stopped in reverse order. No process outlives the
// supervisor, however that ends.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// Options says what to start.
type Options struct {
	// Dir is the plane's directory. It is made if it is not there; a stopped
	// plane's directory resumes its data, keys and, where free, ports.
	Dir string
	// Config must be valid (Config.Problems); Defaults are what Check found
	// out about its flags.
	Config   control.Config
	Defaults topology.Defaults
	// Executable is the multi-call binary that holds the components.
	Executable string
	// Progress receives what happens, line by line. When Start returns it has all that
	// was said; if it does not read, nothing waits for it.
	Progress io.Writer
	// Now is closed when a start that has failed or was interrupted is to kill what
	// still runs at once. Nil: it always stops in order.
	Now <-chan struct{}
	// PickPorts chooses a port for each listener, given those of the last start
	// (zero where there was none). Nil picks free ports on loopback.
	PickPorts func(last topology.Ports) (topology.Ports, error)
}

// Plane is one control plane. Its methods are safe for concurrent use.
type Plane struct {
	opts    Options
	layout  topology.Layout
	dir     *directory
	spawner *process.Spawner
	server  *server
	started time.Time

	events fault.Events
	faults *fault.Manager
	// closing ends when the plane begins to stop, lifetime when its last process
	// was stopped.
	closing, lifetime         context.Context
	beginClosing, endLifetime context.CancelFunc

	stopOnce sync.Once
	stopAsk  chan struct{} // closed when somebody asked to stop
	died     chan error    // why the plane cannot go on; nearly always a process that ended by itself

	mu      sync.Mutex
	state   control.State
	since   time.Time
	cause   string
	members []*member
	// settled tells that the plane has become ready and its processes are not yet
	// being stopped: components may be started again.
	settled bool
	cluster *control.Cluster

	// Files are written without mu: a disk that is kept busy on purpose must not
	// hold up the end of that.
	publishing sync.Mutex // held while cluster.json is written
	messages   *messages

	// These are of the launch that came through.
	plan  topology.Plan
	probe *prober
	ways  ways

	memberIDs map[string]string // etcd's IDs of members, to names
}

var errAsked = errors.New("asked to stop through the control socket")

// Start brings a plane up and returns when it is ready. On an error nothing
// runs any more, and a directory that Start made is gone again, but for the logs if a
// component failed. When ctx ends
// during the start, so does the start.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	if opts.PickPorts == nil {
		opts.PickPorts = PickPorts
	}
	dir, err := openDirectory(ctx, opts.Dir)
	if err != nil {
		return nil, err
	}
	p := &Plane{
		opts: opts, dir: dir, layout: topology.Layout{Dir: dir.path},
		stopAsk: make(chan struct{}), died: make(chan error, 1),
		started: time.Now(), state: control.Starting, since: time.Now(), memberIDs: map[string]string{},
		messages: newMessages(opts.Progress),
	}
	p.faults = fault.NewManager(p, &p.events)
	p.closing, p.beginClosing = context.WithCancel(context.WithoutCancel(ctx))
	p.lifetime, p.endLifetime = context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // `down` also ends a plane that is still starting
		select {
		case <-p.stopAsk:
			cancel(errAsked)
		case <-ctx.Done():
		}
	}()
	err = p.start(ctx)
	if err == nil {
		p.progress("%-26s ready after %.1f s", "the control plane", time.Since(p.started).Seconds())
		p.messages.flush()
		return p, nil
	}
	var component *componentError
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted while starting: %w", context.Cause(ctx))
	} else if errors.As(err, &component) {
		p.dir.keepLogs = true
	}
	p.shutdown(err.Error(), p.patience(opts.Now))
	p.Release()
	return nil, err
}

func (p *Plane) start(ctx context.Context) (err error) {
	if p.spawner, err = process.NewSpawner(); err != nil {
		return err
	}
	if p.server, err = serve(p); err != nil {
		return err
	}
	if err := control.SetHolder(p.dir.lock, control.Holder{PID: os.Getpid(), Socket: p.server.path}); err != nil {
		return err
	}
	if err := p.prepare(); err != nil {
		return err
	}
	go p.tellElections(p.followLogs())
	if err := p.launchRetrying(ctx); err != nil {
		return err
	}
	if err := p.sweep(ctx); err != nil {
		return err
	}
	return p.announce()
}

// check refuses what cannot be, before anything is made.
func (p *Plane) check() error {
	if p.dir.resumed {
		if err := sameMembers(p.layout, p.opts.Config); err != nil {
			return err
		}
	}
	return checkResources(p.layout.Dir, p.opts.Config, p.dir.resumed)
}

// prepare makes everything that the processes read.
func (p *Plane) prepare() error {
	if err := p.check(); err != nil {
		return err
	}
	for _, d := range []string{p.layout.Bin(), p.layout.Logs(), p.layout.Kubeconfigs(), p.layout.Data("")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := p.messages.keep(p.layout.Log(SupervisorLog)); err != nil {
		return err
	}
	if err := finishRestore(p.layout, p.opts.Config); err != nil {
		return err
	}
	if err := p.layout.PKI().Ensure(time.Now(), net.ParseIP(topology.ServiceIP)); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return linkPrograms(p.layout, p.opts.Executable)
}

// Run waits until the plane ends: by ctx, by the control socket, or because a
// process died, which is the only case that gives an error. Then it stops all
// processes in order. When now is closed, what still runs is killed at once; so
// it is when etcd died, without which the API server cannot end in order.
// The directory stays locked until Release or the end of this process.
func (p *Plane) Run(ctx context.Context, now <-chan struct{}) error {
	var err error
	var cause string
	select {
	case <-ctx.Done():
		cause = context.Cause(ctx).Error()
	case <-p.stopAsk:
		cause = errAsked.Error()
	case err = <-p.died:
		cause = err.Error()
		now = p.patience(now)
	}
	p.shutdown(cause, now)
	return err
}

// patience is over at once if a member of etcd has died: what waits for it to end
// in order would wait in vain. Else it is over when now is closed.
func (p *Plane) patience(now <-chan struct{}) <-chan struct{} {
	if !p.etcdDied() {
		return now
	}
	over := make(chan struct{})
	close(over)
	return over
}

// fail ends the plane for a reason; the first counts.
func (p *Plane) fail(err error) {
	select {
	case p.died <- err:
	default:
	}
}

// etcdDied tells whether a member has ended by itself: without a quorum the API
// server cannot end in order.
func (p *Plane) etcdDied() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		select {
		case <-m.child.Done():
			if m.process.Kind == control.KindEtcd && !m.expected {
				return true
			}
		default:
		}
	}
	return false
}

// Release unlocks the directory of a plane that has ended.
func (p *Plane) Release() { p.dir.release() }

// Cluster describes the plane, once it is ready.
func (p *Plane) Cluster() control.Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cluster == nil {
		return control.Cluster{}
	}
	return *p.cluster
}

// askStop makes Run, or a Start that is under way, end the plane.
func (p *Plane) askStop() { p.stopOnce.Do(func() { close(p.stopAsk) }) }

func (p *Plane) setState(s control.State, cause string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil && (s == control.Starting || s == control.Ready) {
		return // a restore that was under way
	}
	p.state, p.since, p.cause = s, time.Now(), cause
}
