package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// drainTimeout is how long watches may be silent after the last write before
// what has not arrived counts as lost.
const drainTimeout = 10 * time.Second

// prepareAtOnce bounds how many loads make their objects at the same time.
const prepareAtOnce = 4

// loads are all streams of work of a run: those of the background, and those
// of each phase.
type loads struct {
	all []*placed

	hurry <-chan struct{} // closed when requests in flight are no longer waited for

	mu     sync.Mutex
	failed error
}

// placed is one load and where the scenario put it.
type placed struct {
	at      scenario.PlacedLoad
	load    load.Load
	changes *watch.Changes     // what the load does, of kind changes
	stop    context.CancelFunc // while it runs
	done    chan struct{}      // closed when it has ended
}

// newLoads makes the loads and the objects they work on, so that no phase
// begins with preparations.
// dir takes the evidence of histories in which something is wrong. hurry is closed
// when requests in flight are no longer waited for.
func newLoads(ctx context.Context, s *scenario.Scenario, target load.Target, dir string, hurry <-chan struct{}) (*loads, error) {
	ls := &loads{hurry: hurry}
	for _, at := range s.Loads() {
		p := &placed{at: at}
		var err error
		switch at.Kind {
		case "requests":
			p.load, err = newRequests(target, at.Load)
		case "watches":
			p.load, err = newWatches(target, at.Load)
		case "history":
			p.load, err = newHistory(target, at, s, dir)
		}
		if err != nil {
			return nil, exitcode.Environmentf("%s: %w", at.Path, err)
		}
		ls.all = append(ls.all, p)
	}
	// Changes write to what watches watch, wherever in the file those stand.
	for _, p := range ls.all {
		if p.at.Kind == "changes" {
			var err error
			if p.load, p.changes, err = newChanges(target, p.at.Load, ls.watches(p.at.Watches)); err != nil {
				return nil, exitcode.Environmentf("%s: %w", p.at.Path, err)
			}
		}
	}
	return ls, ls.prepare(ctx)
}

func newRequests(target load.Target, l *scenario.Load) (load.Load, error) {
	pacer, err := newPacer(target, l)
	if err != nil {
		return nil, err
	}
	op, err := object.NewOperation(target, *l)
	if err != nil {
		return nil, err
	}
	return request.New(target, *l, op, pacer)
}

func newWatches(target load.Target, l *scenario.Load) (load.Load, error) {
	pacer, err := newPacer(target, l)
	if err != nil {
		return nil, err
	}
	objects, err := object.NewSet(target, *l)
	if err != nil {
		return nil, err
	}
	return watch.New(target, *l, pacer, objects)
}

func newChanges(target load.Target, l *scenario.Load, watches *watch.Watches) (load.Load, *watch.Changes, error) {
	pacer, err := newPacer(target, l)
	if err != nil {
		return nil, nil, err
	}
	op, err := watch.NewChanges(target, *l, watches)
	if err != nil {
		return nil, nil, err
	}
	requests, err := request.New(target, *l, op, pacer)
	return requests, op, err
}

func newPacer(target load.Target, l *scenario.Load) (arrival.Pacer, error) {
	p, err := arrival.NewShaped(l.Arrival, float64(l.Rate), l.Shape.Pace(), target.Seed)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	return p, nil
}

func (ls *loads) prepare(ctx context.Context) error {
	slots := make(chan struct{}, prepareAtOnce)
	errs := make([]error, len(ls.all))
	var wg sync.WaitGroup
	for i, p := range ls.all {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := p.load.Prepare(ctx); err != nil {
				errs[i] = exitcode.Environmentf("prepare %s (%s): %w", p.at.Name, p.at.Path, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// of lists the loads that a phase starts; "" the background's.
func (ls *loads) of(phase string) []*placed {
	var some []*placed
	for _, p := range ls.all {
		if p.at.Phase == phase {
			some = append(some, p)
		}
	}
	return some
}

// start starts some loads and returns what stops those that do not outlive
// their phase. Watches outlive their writers: changes are stopped first.
func (ls *loads) start(some []*placed) (stop func() error) {
	for _, p := range some {
		ctx, cancel := context.WithCancel(context.Background())
		p.stop, p.done = cancel, make(chan struct{})
		go func() {
			defer close(p.done)
			if err := p.load.Run(ctx); err != nil && ctx.Err() == nil {
				ls.fail(fmt.Errorf("load %s: %w", p.at.Name, err))
			}
		}()
	}
	return func() error {
		for _, p := range some {
			if p.at.Kind != "watches" {
				p.stop()
			}
		}
		for _, p := range some {
			if p.at.Kind != "watches" {
				ls.await(p.done)
			}
		}
		ls.mu.Lock()
		defer ls.mu.Unlock()
		return ls.failed
	}
}

func (ls *loads) fail(err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.failed = errors.Join(ls.failed, err)
}

// drain waits until the watches have delivered what was written to them, and
// ends those that do not outlive the phase.
func (ls *loads) drain(ctx context.Context, some []*placed) {
	for _, p := range some {
		if p.at.Kind == "changes" {
			// What is lost by then stands in the results.
			_, _ = ls.watches(p.at.Watches).Drain(ctx, drainTimeout)
		}
	}
	for _, p := range some {
		if p.at.Kind == "watches" && !p.at.Hold {
			p.stop()
			ls.await(p.done)
		}
	}
}

// await waits for a load's end, unless the user will not.
func (ls *loads) await(done <-chan struct{}) {
	select {
	case <-done:
	case <-ls.hurry:
	}
}

func (ls *loads) watches(name string) *watch.Watches {
	for _, p := range ls.all {
		if w, ok := p.load.(*watch.Watches); ok && p.at.Name == name {
			return w
		}
	}
	return nil
}

// stopAll ends whatever still runs.
func (ls *loads) stopAll() {
	for _, p := range ls.all {
		if p.stop != nil {
			p.stop()
		}
	}
	for _, p := range ls.all {
		if p.stop != nil {
			ls.await(p.done)
		}
	}
}

func (ls *loads) beginPhase(name string, at time.Time) {
	for _, p := range ls.all {
		p.load.BeginPhase(name, at)
	}
}

// awaitOpen waits until all watches that run are established. Those of a phase
// that is over do not run; one that failed is told when the phase ends.
func (ls *loads) awaitOpen(ctx context.Context) error {
	for _, p := range ls.all {
		w, ok := p.load.(*watch.Watches)
		if !ok || p.stop == nil {
			continue
		}
		select {
		case <-w.AllOpen():
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// snapshot adds up what happened since the last one.
func (ls *loads) snapshot(s *Snapshot) {
	for _, p := range ls.all {
		l := p.load.Live()
		s.WatchesOpen += l.Open
		s.Delivered += l.Delivered
		if p.at.Kind != "watches" { // theirs is the latency of a delivery
			s.Offered += l.Offered
			s.Achieved += l.Achieved
			s.P99 = max(s.P99, l.P99)
		}
	}
}

// backlog is how many bytes have come that no load has read yet.
func (ls *loads) backlog() int64 {
	var sum int64
	for _, p := range ls.all {
		if b, ok := p.load.(interface{ Backlog() int64 }); ok {
			sum += b.Backlog()
		}
	}
	return sum
}
