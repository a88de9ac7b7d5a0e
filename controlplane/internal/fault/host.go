// Package fault applies a control.Fault to a running control plane and undoes it:
// at the fault's end by a timer, which does not depend on the client that began
// it, and at the plane's end.
//
// The Manager knows what each kind of fault does, which faults can be in force together and when they end. The Host
// is the plane itself. The packages below this one slow fsync, cut links and serve webhooks.
package fault

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
	"github.com/stormglass/stormglass/controlplane/internal/service"
)

// ErrNotRunning is wrapped by the error of a Host for a component that does not run.
var ErrNotRunning = errors.New("does not run")

// Host is the part of a plane that a Manager needs. Components are identified by name ("etcd-0"). A name that the
// plane does not have is an error; so is a component that does not run where its process is needed (ErrNotRunning).
// All methods are safe for concurrent use and return soon after their context has ended.
type Host interface {
	// Config returns the plane's configuration.
	Config() control.Config
	// Available returns an error if the plane cannot have any fault now. NeighbourAvailable returns an error if
	// Neighbour cannot work: an external etcd needs a second file system. Both are called before a run and must not
	// change anything.
	Available() error
	NeighbourAvailable() error
	// Leader returns the name of the current leader of a kind: the leader of the etcd members, or the holder of the
	// lease. It fails if there is no leader, and always for kube-apiserver, whose replicas are equal.
	Leader(ctx context.Context, kind string) (string, error)

	// Signal sends a signal to a component's process. After SIGSTOP, the host's own monitoring of the component must
	// neither hang nor give up the component.
	Signal(name string, signal os.Signal) error
	// Kill ends a component by SIGKILL, and Stop ends it in order. Both return when it is gone. Both are expected
	// exits: the plane keeps running and does not start the component by itself, even if it was about to start it
	// again. A component that does not run is not an error.
	Kill(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	// Start starts a component that was killed or stopped, with the same ports and data. flags replace the
	// component's own flags until the new process ends. Start returns when the process has started; AwaitReady waits
	// until it is ready. Start does nothing if the component already runs, which is not an error.
	Start(ctx context.Context, name string, flags control.Flags) error
	// AwaitReady returns when the component serves; for an API server behind a load balancer, when the balancer gives it
	// connections. It returns the reason if the context or the process ends first.
	AwaitReady(ctx context.Context, name string) error

	// ReleaseAvailable returns an error if there is no program of a release; LinkRelease links the program into the plane. Move
	// changes the release with which a component starts next time; Config reflects it.
	ReleaseAvailable(ctx context.Context, r control.Release) error
	LinkRelease(ctx context.Context, r control.Release) error
	Move(name string, to control.Release) error

	// Rehearse takes a snapshot of etcd, stops everything, restores the snapshot and starts everything on the
	// restored data. It returns when everything is ready. After an error the plane is unchanged.
	Rehearse(ctx context.Context) error

	// SetLimit sets a soft limit of a component's process, effective immediately, and returns the earlier limit, like
	// the function SetLimit of this package.
	SetLimit(name string, of Rlimit, soft uint64) (was uint64, err error)
	// Fsync returns the fsync agent in the current process of an etcd member.
	Fsync(name string) (Fsync, error)
	// SetBehaviour changes how a service answers.
	SetBehaviour(ctx context.Context, name string, b service.Behaviour) error
	// RotateKey gives the services of a kind a new key.
	RotateKey(ctx context.Context, kind string) error
	// Links returns the links that can be delayed and cut. It returns none without networkFaults.
	Links() []Link
	// Neighbour starts writers that each write size bytes and fsync, over and over (zero means the defaults of
	// package disk). They write on the file system of etcd's data if etcd is stacked, and on another one if it is
	// external. Neighbour returns when they write. stop ends the writers, removes their files and then returns. lost
	// is called with the reason if the writers end by themselves. ctx bounds only the start.
	Neighbour(ctx context.Context, writers int, size int64, lost func(error)) (stop func(context.Context) error, err error)
	// Etcd calls a path of one member's JSON gateway, such as "/v3/maintenance/alarm". If the member is paused, the
	// call ends with the context.
	Etcd(ctx context.Context, member, path string, in, out any) error
	// Kubeconfig returns the path of the administrator's kubeconfig.
	Kubeconfig() string
}

// Fsync is an fsync.Agent.
type Fsync interface {
	Set(ctx context.Context, delay fsync.Delay) error
	Clear(ctx context.Context) error
}

// Link is a network.Link: it carries the data that one component exchanges with another, over any number of
// connections. When a method returns, its change is in force for open and new connections.
type Link interface {
	// From returns the component that opens the connections, To the component that accepts them.
	From() string
	To() string
	// Delay makes data wait in each direction: for delay, plus or minus up to jitter, drawn from the seed.
	Delay(delay, jitter time.Duration, seed int64)
	// Cut lets nothing through, in either direction: connections hang.
	Cut()
	// Restore undoes Delay and Cut.
	Restore()
}

// Rlimit is a resource limit of a process, as of setrlimit(2).
type Rlimit string

// The limits that faults lower.
const (
	OpenFiles Rlimit = "open files"
	FileSize  Rlimit = "a file's size"
)
