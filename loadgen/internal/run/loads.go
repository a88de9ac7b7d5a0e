package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/result"
)

// finishWithin is the time limit to finish all loads. It allows for the final reads of a "history" load, which wait
// until the control plane has recovered from its last fault.
const finishWithin = 3 * time.Minute

// prepareAtOnce is the maximum number of loads that create their objects at the same time.
const prepareAtOnce = 4

// ErrPrepare means that the objects of a load could not be created. The load's error wraps ErrPrepare.
var ErrPrepare = errors.New("prepare")

type loads struct {
	all   []*placed
	fleet *workers.Fleet // the workers; nil without workers

	hurry <-chan struct{} // closed when the user no longer waits for requests in flight to finish

	definesLater func(resource string) bool

	mu      sync.Mutex
	failed  error
	unready []string // messages about loads that sent nothing, because the API server never served their resource
	halted  bool     // halt was called, so no more loads start
}

type placed struct {
	at   plan.Load
	load load.Load
	// late is the error of Prepare if the API server does not serve the load's resource yet, but a phase of the
	// scenario may define it; otherwise nil. `ready` is closed when the load is prepared.
	late  error
	ready chan struct{}
	stop  context.CancelFunc // function that stops the load; nil before the load starts
	done  chan struct{}      // closed when the load has ended
}

// newLoads creates the loads, and then their objects, so that no phase begins with preparations. "history" loads that
// fail their check write evidence to dir. `hurry` is closed when the user no longer waits for requests in flight. fleet
// runs the loads that are divided among workers; nil means no workers.
func newLoads(ctx context.Context, s *plan.Plan, target load.Target, dir string, hurry <-chan struct{}, fleet *workers.Fleet) (*loads, error) {
	whole := func(name string) bool { return fleet == nil || !kind.Divides(name) }
	made, err := kind.MakeSome(s, target, dir, whole)
	if err != nil {
		return nil, exitcode.EnvironmentError(err)
	}
	ls := &loads{hurry: hurry, fleet: fleet, definesLater: s.MayDefine}
	for i, at := range s.Loads {
		if divided := fleet.Load(at.Name); divided != nil {
			made[i] = divided
		}
		ls.all = append(ls.all, &placed{at: at, load: made[i], ready: make(chan struct{})})
	}
	return ls, ls.prepare(ctx)
}

func (ls *loads) prepare(ctx context.Context) error {
	errs := make([]error, len(ls.all))
	var group errgroup.Group
	group.SetLimit(prepareAtOnce)
	for i, p := range ls.all {
		group.Go(func() error {
			err := p.load.Prepare(ctx)
			switch {
			case err == nil:
				close(p.ready)
			case ls.definedLater(err):
				p.late = err
			default:
				errs[i] = exitcode.Environmentf("%w %s (%s): %w", ErrPrepare, p.at.Name, p.at.Path, err)
			}
			return nil
		})
	}
	_ = group.Wait() // errs has all errors, not only the first
	return errors.Join(errs...)
}

// of returns the loads of a phase. If phase is "", it returns the background loads.
func (ls *loads) of(phase string) []*placed {
	return slices.DeleteFunc(slices.Clone(ls.all), func(p *placed) bool { return p.at.Phase != phase })
}

// start starts the given loads in the background. The function `stop` stops these loads, except watches, and returns
// the errors of all loads that failed. drain stops the watches later, when they have received all writes.
func (ls *loads) start(some []*placed) (stop func() error) {
	for _, p := range some {
		ctx := ls.begin(p)
		if ctx == nil {
			continue
		}
		go func() {
			defer close(p.done)
			if !ls.awaitReady(ctx, p) {
				return
			}
			if err := p.load.Run(ctx); err != nil && ctx.Err() == nil {
				ls.fail(fmt.Errorf("load %s: %w", p.at.Name, err))
			}
		}()
	}
	return func() error {
		ls.end(some, func(p *placed) bool { return !p.at.OpensWatches() })
		ls.mu.Lock()
		defer ls.mu.Unlock()
		return ls.failed
	}
}

// begin returns the context in which a load runs, or nil if halt was called.
func (ls *loads) begin(p *placed) context.Context {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.halted {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop, p.done = cancel, make(chan struct{})
	return ctx
}

// halt stops all loads from sending and returns immediately. It does not wait for requests in flight; `end` does.
func (ls *loads) halt() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.halted = true
	for _, p := range ls.all {
		if p.stop != nil {
			p.stop()
		}
	}
}

// overdue returns the number of open requests, over all loads, that were due at least d ago.
func (ls *loads) overdue(d time.Duration) (n int64) {
	for _, p := range ls.all {
		if l, ok := p.load.(interface{ Overdue(time.Duration) int64 }); ok {
			n += l.Overdue(d)
		}
	}
	return n
}

func (ls *loads) fail(err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.failed = errors.Join(ls.failed, err)
}

// drain waits until the watches in `some` have received what the loads wrote. Then it ends the watches that are not
// held open after their phase.
func (ls *loads) drain(ctx context.Context, some []*placed) {
	for _, p := range some {
		p.load.Settle(ctx)
	}
	ls.end(some, func(p *placed) bool { return p.at.OpensWatches() && !p.at.Hold })
}

// end stops the running loads that the function `which` selects. It waits until they have ended or the user no longer
// waits.
func (ls *loads) end(all []*placed, which func(*placed) bool) {
	some := slices.DeleteFunc(slices.Clone(all), func(p *placed) bool { return p.stop == nil || !which(p) })
	for _, p := range some {
		p.stop()
	}
	for _, p := range some {
		select {
		case <-p.done:
		case <-ls.hurry:
		}
	}
}

func (ls *loads) stopAll() { ls.end(ls.all, func(*placed) bool { return true }) }

func (ls *loads) beginPhase(name string, at time.Time) {
	ls.fleet.BeginPhase(name, at)
	for _, p := range ls.all {
		p.load.BeginPhase(name, at)
	}
}

// awaitOpen waits until all running watches are established. It does not wait for a watch that fails; the phase reports
// that error at its end.
func (ls *loads) awaitOpen(ctx context.Context) error {
	for _, p := range ls.all {
		open := p.load.AllOpen()
		if open == nil || p.stop == nil {
			continue
		}
		select {
		case <-open:
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// awaitMade waits until the running loads of kind "objects" have created all their objects or have ended.
func (ls *loads) awaitMade(ctx context.Context) error {
	for _, p := range ls.all {
		made, ok := p.load.(interface{ Over() <-chan struct{} })
		if !ok || p.at.Kind != "objects" || p.stop == nil {
			continue
		}
		select {
		case <-made.Over():
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// finish calls Finish of each load that was started. If ctx has ended, because the run was interrupted or lost its target,
// a "history" load judges only the part that it recorded, and its result names the missing part.
func (ls *loads) finish(ctx context.Context, step func(format string, args ...any)) {
	ctx, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	for _, p := range ls.all {
		if p.stop == nil {
			continue
		}
		if err := p.load.Finish(ctx, step); err != nil {
			step("%v", err)
		}
	}
}

// addTo adds the results of the loads to the measurements. It fails if the results of the workers cannot be merged.
func (ls *loads) addTo(m *result.Measurements) error {
	for _, p := range ls.all {
		p.load.AddTo(m)
	}
	return ls.fleet.AddTo(m)
}

// snapshot adds the current state of the loads to s: open watches, delivered events, and the rates and latency since
// the previous snapshot.
func (ls *loads) snapshot(s *Snapshot) {
	for _, p := range ls.all {
		l := p.load.Live()
		s.WatchesOpen += l.Open
		s.Delivered += l.Delivered
		s.Offered += l.Offered
		s.Achieved += l.Achieved
		s.P99 = max(s.P99, l.P99)
	}
}

func (ls *loads) backlog() int64 {
	var sum int64
	for _, p := range ls.all {
		sum += p.load.Backlog()
	}
	return sum
}
