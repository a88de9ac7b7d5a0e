// Package fault applies a control.Fault to a running control plane and undoes it:
// at the fault's end by a timer, which does not depend on the client that began
// it, and at the plane's end.
//
// The Manager knows what each kind means, which faults go together and when
// they end. The Host is the plane itself. How an fsync is slowed, a link cut
// or a webhook served is in the packages below this one.
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

// ErrNotRunning is wrapped by a Host's error of a component that does not run.
var ErrNotRunning = errors.New("does not run")

// Host is the plane as a Manager needs it. Components are known by name
// ("etcd-0"). A name that the plane does not have is an error; so is a component
// that does not run where its process is needed (ErrNotRunning). All methods are safe
// for concurrent use and return soon after their context has ended.
type Host interface {
	// Config is the plane's configuration.
	Config() control.Config
	// Available returns an error if the plane can have no fault now, NeighbourAvailable if
	// it can have no Neighbour: an external etcd needs a second file system. Both are
	// called before a run and must change nothing.
	Available() error
	NeighbourAvailable() error
	// Leader names the component of a kind that leads now: the leader of etcd's
	// members, or the holder of the lease. It is an error if none leads, and for
	// kube-apiserver, whose replicas are equals.
	Leader(ctx context.Context, kind string) (string, error)

	// Signal sends a signal to a component's process. After SIGSTOP the host's
	// own watch over the component must neither hang nor give it up.
	Signal(name string, signal os.Signal) error
	// Kill ends a component by SIGKILL and returns when it is gone; Stop ends it in order and returns when it is gone. Both are
	// expected exits: the plane keeps running and does not start it by itself. A component that does not run is not an error;
	// if the plane was about to start it again, it does not.
	Kill(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	// Start starts a component that was killed or stopped, with the same ports and data. flags replace its own flags until this
	// process ends. Start returns when the process has started; AwaitReady waits until it is ready. Start does nothing if the
	// component already runs, which is not an error.
	Start(ctx context.Context, name string, flags control.Flags) error
	// AwaitReady returns when the component serves; for an API server behind a load balancer, when the balancer gives it
	// connections. It returns the reason if the context or the process ends first.
	AwaitReady(ctx context.Context, name string) error

	// ReleaseAvailable returns an error if there is no program of a release; LinkRelease links the program into the plane. Move
	// changes the release with which a component starts next time; Config reflects it.
	ReleaseAvailable(ctx context.Context, r control.Release) error
	LinkRelease(ctx context.Context, r control.Release) error
	Move(name string, to control.Release) error

	// Rehearse takes a snapshot of etcd, stops everything, restores the snapshot
	// and starts everything on it. It returns when all is ready; after an error the
	// plane is unchanged.
	Rehearse(ctx context.Context) error

	// SetLimit sets a soft limit of a component's process, effective immediately, and returns the earlier limit. SetLimit of
	// this package does the same for a process.
	SetLimit(name string, of Rlimit, soft uint64) (was uint64, err error)
	// Fsync returns the agent in the current process of an etcd member.
	Fsync(name string) (Fsync, error)
	// SetBehaviour changes how a service answers.
	SetBehaviour(ctx context.Context, name string, b service.Behaviour) error
	// RotateKey gives the services of a kind a new key.
	RotateKey(ctx context.Context, kind string) error
	// Links returns the links that can be delayed and cut; empty without networkFaults.
	Links() []Link
	// Neighbour starts writers that each write size bytes and fsync, over and
	// over (zero: package disk's defaults): on the file system of etcd's data if etcd is stacked, on
	// another one if it is external. It returns when they write; stop ends them,
	// removes what they wrote and returns when both is done. lost is called with the
	// reason if they end by themselves before. ctx bounds the start only.
	Neighbour(ctx context.Context, writers int, size int64, lost func(error)) (stop func(context.Context) error, err error)
	// Etcd calls the JSON gateway of one member, as "/v3/maintenance/alarm".
	// A paused member makes it wait no longer than the context.
	Etcd(ctx context.Context, member, path string, in, out any) error
	// Kubeconfig is the file with the administrator's identity.
	Kubeconfig() string
}

// Fsync is an fsync.Agent.
type Fsync interface {
	Set(ctx context.Context, delay fsync.Delay) error
	Clear(ctx context.Context) error
}

// Link is a network.Link: what one component sends to another and gets back,
// over as many connections as it has. Each call is in force for open and new
// connections alike when it returns.
type Link interface {
	// From is the component that opens the connection, To the component that accepts it.
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
