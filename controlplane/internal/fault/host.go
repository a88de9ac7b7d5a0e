// Package fault applies a control.Fault to a running control plane and undoes the fault when its duration is over, and
// at the latest when the plane ends. A timer ends the fault, so the client that began it need not stay connected.
//
// The Manager implements each kind of fault, and decides which faults can be active together and when they end. The
// Host is the plane itself. The subpackages delay fsync calls and links, load the disk, and serve webhooks.
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

// ErrNotRunning means that a component is not running. If a Host method needs its process, the error of the method
// wraps ErrNotRunning.
var ErrNotRunning = errors.New("does not run")

// Host is the part of a plane that a Manager needs. Its methods identify components by name ("etcd-0"), and return an
// error for a name that the plane does not have. They return ErrNotRunning if they need the component's process and it
// is not running. All methods are safe for concurrent use and return soon after their context has ended.
type Host interface {
	// Config returns the plane's configuration.
	Config() control.Config
	// Available returns an error if no fault can begin now. NeighbourAvailable returns an error if Neighbour cannot
	// work, for example because etcd is external and this machine has no second file system. Manager.Check also calls
	// both, so they must not change anything.
	Available() error
	NeighbourAvailable() error
	// Leader returns the name of the current leader of a kind: the leader of the etcd members, or the holder of the
	// lease. It fails if there is no leader. It always fails for kube-apiserver, whose replicas are equal.
	Leader(ctx context.Context, kind string) (string, error)

	// Signal sends a signal to a component's process. After SIGSTOP, the host's monitoring must neither hang nor treat
	// the component as lost.
	Signal(name string, signal os.Signal) error
	// Kill ends a component with SIGKILL, and Stop ends it gracefully. Both return when the process has ended. The exit
	// counts as expected: the plane keeps running and does not restart the component, even if a restart was about to
	// begin. If the component is not running, Kill and Stop return nil.
	Kill(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	// Start starts a component that was killed or stopped, with the same ports and data. `flags` override the
	// component's own flags of the same names, also after an automatic restart, until the next call of Start. Start
	// returns when the process has started; AwaitReady waits until it is ready. If the component is already running,
	// Start does nothing and returns nil.
	Start(ctx context.Context, name string, flags control.Flags) error
	// AwaitReady returns nil when the component serves. An API server behind a load balancer serves when the load
	// balancer sends it connections. If the context or the process ends first, AwaitReady returns the reason.
	AwaitReady(ctx context.Context, name string) error

	// ReleaseAvailable returns an error if no program of release r can be found. LinkRelease links that program into the
	// plane's directory. Move sets the release that a component uses from its next start; Config then includes the change.
	ReleaseAvailable(ctx context.Context, r control.Release) error
	LinkRelease(ctx context.Context, r control.Release) error
	Move(name string, to control.Release) error

	// Rehearse takes a snapshot of etcd, stops all components, restores the snapshot, and starts the components on the
	// restored data. It returns when they are ready. If a step fails, the plane goes back to its previous data.
	Rehearse(ctx context.Context) error

	// SetLimit sets the soft value of a resource limit of a component's process and returns the previous value. The
	// change is effective immediately. See the function SetLimit of this package.
	SetLimit(name string, of Rlimit, soft uint64) (was uint64, err error)
	// Fsync returns the fsync agent in the current process of an etcd member.
	Fsync(name string) (Fsync, error)
	// SetBehaviour sets the delays and failures of a service's responses.
	SetBehaviour(ctx context.Context, name string, b service.Behaviour) error
	// RotateKey gives the services of a kind a new key.
	RotateKey(ctx context.Context, kind string) error
	// Links returns the links that can be delayed and cut. It returns no links if networkFaults is off.
	Links() []Link
	// Neighbour starts `writers` disk writers. Each repeatedly writes `size` bytes and fsyncs. If writers or size is
	// zero, the default of package disk applies. The writers use the file system of etcd's data if etcd is stacked, and
	// another file system if etcd is external. Neighbour returns when the writers have begun to write. `stop` returns
	// when the writers have ended and their files are removed. If the writers end by themselves, Neighbour calls `lost`
	// with the reason. ctx limits only the start.
	Neighbour(ctx context.Context, writers int, size int64, lost func(error)) (stop func(context.Context) error, err error)
	// Etcd calls a path of one member's JSON gateway, such as "/v3/maintenance/alarm". If the member is paused, the
	// call fails when the context ends.
	Etcd(ctx context.Context, member, path string, in, out any) error
	// Kubeconfig returns the path of the administrator's kubeconfig.
	Kubeconfig() string
}

// Fsync contains the methods of fsync.Agent that a Manager uses.
type Fsync interface {
	Set(ctx context.Context, delay fsync.Delay) error
	Clear(ctx context.Context) error
}

// Link is the interface of network.Link. A link carries the data that one component exchanges with another, over any
// number of connections. When a method returns, its change applies to open and new connections.
type Link interface {
	// From returns the component that opens the connections. To returns the component that accepts them.
	From() string
	To() string
	// Delay delays data in each direction by delay, plus or minus a random time up to jitter. seed determines the random times.
	Delay(delay, jitter time.Duration, seed int64)
	// Cut stops all data in both directions, so that connections hang.
	Cut()
	// Restore undoes Delay and Cut.
	Restore()
}

// Rlimit is a resource limit of a process (see setrlimit(2)), by its name in messages.
type Rlimit string

// The resource limits that faults lower.
const (
	OpenFiles Rlimit = "open files"
	FileSize  Rlimit = "a file's size"
)
