package run

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/result"
)

// target is the control plane under load. It detects that the control plane is lost.
type target struct {
	*cluster.Target
	provider
	// supervisor is the supervisor of a Stormglass control plane. It is nil on a user's cluster, which does not
	// support faults of the control plane.
	supervisor supervisor
	// eventsBefore is the sequence number of the supervisor's last event before the run. faultsBefore contains the
	// events of faults before the run, with the same keys as follower.told.
	eventsBefore int64
	faultsBefore map[string]bool
	// leadersBefore are the supervisor's events of elections before the run.
	leadersBefore []control.Event
	// cloud is the simulated cloud with the instances of simulated nodes; nil means no cloud.
	cloud node.Cloud

	lost    context.Context // context that ends when the target is lost, with the reason as its cause
	lose    context.CancelCauseFunc
	unwatch func()
}

// provider is the part of a target that depends on the type of target: a control plane of the run, a shared control plane,
// or a user's cluster.
type provider interface {
	// awaitLoss waits until the target is lost and returns the reason, or returns nil when ctx ends.
	awaitLoss(ctx context.Context) error
	// close stops the run's control plane, or removes the run's objects from another target.
	close(lost bool, phases []result.Phase) error
	// discard replaces close for a run that leaves no report.
	discard(lost bool) error
	// unlock releases the lock that the run holds on the target, if any.
	unlock() error
	// lockTaken describes the run that has taken over the lock from this run, or returns "" if this run still holds it.
	lockTaken() string
}

func newTarget(t *cluster.Target, p provider, s supervisor) *target {
	made := &target{Target: t, provider: p, supervisor: s, faultsBefore: map[string]bool{}, unwatch: func() {}}
	made.lost, made.lose = context.WithCancelCause(context.Background())
	return made
}

// setup creates the objects that the run needs in the target. If the target outlives the run, setup adds their removal
// to `started`, and records them in dir unless dir is empty. `told` is a line for the user if simulated nodes
// authenticate with tokens instead of certificates; otherwise "".
func (t *target) setup(ctx context.Context, c console, dir string, started *undo) (told string, err error) {
	if _, bundled := t.provider.(*bundledPlane); !bundled {
		if dir != "" {
			if err := t.RecordIn(dir); err != nil {
				return "", exitcode.EnvironmentError(err)
			}
		}
		started.add(func() error { return t.discard(t.isLost()) })
	}
	if told, err = t.ChooseCredentials(ctx); err != nil {
		return "", exitcode.EnvironmentError(err)
	}
	if told != "" {
		c.step("%s", told)
	}
	return told, exitcode.EnvironmentError(t.Setup(ctx))
}

// watch returns a context that ends when `parent` ends or the target is lost. t.unwatch ends the watch.
func (t *target) watch(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	watching, stop := context.WithCancel(context.WithoutCancel(parent))
	var done sync.WaitGroup
	done.Go(func() {
		if loss := t.awaitLoss(watching); loss != nil && watching.Err() == nil {
			t.lose(loss)
			cancel(t.lossError(loss))
		}
	})
	t.unwatch = func() {
		stop()
		done.Wait()
		cancel(nil)
	}
	return ctx
}

// lossError returns the error to show to the user if the target is lost. `loss` is the reason.
func (t *target) lossError(loss error) error {
	if t.supervisor == nil {
		return exitcode.EnvironmentError(loss)
	}
	return exitcode.Environmentf("%w: %w", ErrPlaneEnded, loss)
}

func (t *target) isLost() bool { return t.lost.Err() != nil }

// firstCause returns the reason for the loss of the target if err may be a consequence of that loss; otherwise it
// returns err. The run often notices a consequence before it notices the loss. So firstCause waits as long as the run
// needs to notice a loss.
func (t *target) firstCause(ctx context.Context, err error) error {
	if errors.As(err, new(apierrors.APIStatus)) || exitcode.IsUsage(err) {
		return err
	}
	wait := time.NewTimer(cluster.LossWithin(err) + time.Second)
	defer wait.Stop()
	select {
	case <-t.lost.Done():
		return t.lossError(context.Cause(t.lost))
	case <-wait.C:
	case <-ctx.Done():
	}
	return err
}
