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

// target is the control plane under load, with the watch for its loss.
type target struct {
	*cluster.Target
	provider
	// supervisor is the supervisor of a bundled plane. It is nil on a user's cluster, which has no faults of the control
	// plane.
	supervisor supervisor
	// eventsBefore is the number of the supervisor's last event before the run. faultsBefore are the faults before the
	// run, with the keys of follower.told.
	eventsBefore int64
	faultsBefore map[string]bool
	// leadersBefore are the elections before the run.
	leadersBefore []control.Event
	// cloud has the instances of simulated nodes; nil: no cloud.
	cloud node.Cloud

	lost    context.Context // ends when the target is lost, with the reason as its cause
	lose    context.CancelCauseFunc
	unwatch func()
}

// provider is the part of a target that depends on where the target comes from: a bundled plane, a shared one, or a
// user's cluster.
type provider interface {
	// awaitLoss waits until the target is lost and returns the reason, or returns nil when ctx ends.
	awaitLoss(ctx context.Context) error
	// lossError wraps the reason of a loss for the user.
	lossError(loss error) error
	// close ends a plane, or removes from a user's cluster what the run made.
	close(lost bool, phases []result.Phase) error
	// discard does the same as close, for a run that leaves no report.
	discard(lost bool) error
	// unlock releases the lock that the run holds on the target, if any.
	unlock() error
	// lockTaken describes the run that has taken over the lock from this run. It is empty if this run still holds the
	// lock.
	lockTaken() string
}

func newTarget(t *cluster.Target, p provider, s supervisor) *target {
	made := &target{Target: t, provider: p, supervisor: s, faultsBefore: map[string]bool{}, unwatch: func() {}}
	made.lost, made.lose = context.WithCancelCause(context.Background())
	return made
}

// setup creates what the run needs in the target. If the target outlives the run, setup adds the removal of this to
// started. told is a line on what nodes without certificates lack; it is empty if that does not apply.
func (t *target) setup(ctx context.Context, c console, started *undo) (told string, err error) {
	if _, bundled := t.provider.(*bundledPlane); !bundled {
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

// watch returns a context that ends with parent or when the target is lost. It
// watches until unwatch.
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

func (t *target) isLost() bool { return t.lost.Err() != nil }

// lossWithin is the maximum time until the loss of a target is noticed: package
// cluster's probe needs most of it.
const lossWithin = 6 * time.Second

// firstCause returns the loss of the target if err may be a consequence of it, and otherwise err. A consequence often
// shows before the loss, so firstCause waits up to lossWithin for the loss.
func (t *target) firstCause(ctx context.Context, err error) error {
	if errors.As(err, new(apierrors.APIStatus)) || exitcode.IsUsage(err) {
		return err
	}
	wait := time.NewTimer(lossWithin)
	defer wait.Stop()
	select {
	case <-t.lost.Done():
		return t.lossError(context.Cause(t.lost))
	case <-wait.C:
	case <-ctx.Done():
	}
	return err
}
