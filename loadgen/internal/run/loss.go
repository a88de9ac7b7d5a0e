package run

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
)

// errPlaneEnded is the cause by which a run ends when its plane does.
var errPlaneEnded = errors.New("the control plane ended while the run went on")

// lossWithin is how long the loss of what a run is aimed at may take to be
// noticed: package cluster's probe needs most of it.
const lossWithin = 6 * time.Second

// watch gives a context that ends with parent, or when what the run is aimed at
// is lost. release ends it.
func (r *run) watch(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	watching, stop := context.WithCancel(context.WithoutCancel(parent))
	r.lost = make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		if loss := r.awaitLoss(watching); loss != nil && watching.Err() == nil {
			r.loss = loss
			close(r.lost)
			cancel(r.lossError())
		}
	})
	r.unwatch = func() {
		stop()
		done.Wait()
		cancel(nil)
	}
	return ctx
}

// release ends the watch, if there is one.
func (r *run) release() {
	if r.unwatch != nil {
		r.unwatch()
	}
}

// awaitLoss returns why what the run is aimed at is lost, or nil when ctx ends. A
// fault of the scenario is no loss: the supervisor outlives all of them.
func (r *run) awaitLoss(ctx context.Context) error {
	if r.plane == nil {
		return r.target.AwaitLoss(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopping := make(chan error, 1)
	go func() { stopping <- r.awaitStopping(ctx) }()
	for {
		select {
		case <-planeDone(r.plane):
			return planeEnded(r.plane)
		case why := <-stopping:
			if why != nil {
				return why
			}
			stopping = nil // the events have ended: so will the supervisor
		case <-ctx.Done():
			return nil
		}
	}
}

// awaitStopping returns why the supervisor has begun to stop its plane: a
// component that died is told then, seconds before the last process has ended. It
// returns nil when the events or ctx end.
func (r *run) awaitStopping(ctx context.Context) error {
	for after := int64(0); ctx.Err() == nil; {
		events, err := r.supervisor.Events(ctx, after)
		if errors.Is(err, control.ErrEnded) {
			return nil
		}
		for _, e := range events {
			if after = e.Seq; e.Kind == control.EventStopping {
				return errors.New(e.Detail)
			}
		}
		if err != nil {
			pause(ctx, followRetry)
		}
	}
	return nil
}

// firstCause is the loss of what the run is aimed at, where err may be its
// consequence, or err. A consequence is often known first: it is waited for.
func (r *run) firstCause(ctx context.Context, err error) error {
	var answer apierrors.APIStatus
	if r.lost == nil || errors.As(err, &answer) || exitcode.IsUsage(err) {
		return err
	}
	wait := time.NewTimer(lossWithin)
	defer wait.Stop()
	select {
	case <-r.lost:
		return r.lossError()
	case <-wait.C:
	case <-ctx.Done():
	}
	return err
}

// lossError is the end of a run whose target is lost.
func (r *run) lossError() error {
	if r.plane != nil {
		return exitcode.Environmentf("%w: %w", errPlaneEnded, r.loss)
	}
	return exitcode.EnvironmentError(r.loss)
}

// isLost reports whether what the run is aimed at is lost.
func (r *run) isLost() bool {
	select {
	case <-r.lost:
		return true
	default:
		return false
	}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// planeDone is closed when the bundled plane has ended; never for a user's
// cluster.
func planeDone(p *control.Supervisor) <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.Done()
}

// planeEnded says why a plane that is Done ended without being stopped by the run.
func planeEnded(p *control.Supervisor) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New("somebody else stopped it")
}
