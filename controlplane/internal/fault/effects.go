package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
	"github.com/stormglass/stormglass/controlplane/internal/service"
)

// mechanism implements one kind of fault: it begins faults and undoes them.
type mechanism struct {
	// lacks returns an error if the plane or this machine does not support the fault, for example because a program is
	// missing. It changes nothing. Nil means that there is nothing to check.
	lacks func(*Manager, context.Context, control.Fault) error
	// begin activates a fault. If begin fails, the returned effect undoes the changes that begin has made.
	begin func(m *Manager, ctx context.Context, id string, f control.Fault, t target) (effect, error)
	// undoWithin is the time limit for undoing the fault; zero means 30 s.
	undoWithin time.Duration
	// last reports whether the fault can only be undone while the plane serves. The Manager undoes such faults after
	// all other faults.
	last bool
}

// mechanisms returns the mechanism of each kind of fault in control.FaultTable that affects a plane.
func mechanisms() map[string]mechanism {
	return map[string]mechanism{
		control.FaultSlowFsync:      {lacks: onMachine(fsync.Available), begin: (*Manager).slowFsync},
		control.FaultDiskContention: {lacks: (*Manager).checkNeighbour, begin: (*Manager).neighbour},
		control.FaultNetworkDelay:   {begin: (*Manager).delay},
		control.FaultPartition:      {begin: (*Manager).cut},
		control.FaultPause:          {begin: (*Manager).pause},
		control.FaultKill:           {begin: (*Manager).kill},
		control.FaultRestart:        {begin: (*Manager).restart, undoWithin: undoLongWithin},
		control.FaultDescriptors:    {lacks: onMachine(limitsAvailable), begin: (*Manager).limitDescriptors},
		control.FaultDiskFull:       {lacks: onMachine(limitsAvailable), begin: (*Manager).fillDisk},
		control.FaultWebhook:        {lacks: (*Manager).checkServed, begin: (*Manager).slowWebhook, undoWithin: undoLongWithin, last: true},
		control.FaultService:        {begin: (*Manager).slowService},
		control.FaultKeyRotation:    {begin: (*Manager).rotateKey},
		control.FaultQuota:          {begin: (*Manager).lowerQuota, undoWithin: undoLongWithin, last: true},
		control.FaultRestore:        {begin: (*Manager).rehearse, undoWithin: undoLongWithin},
		control.FaultUpgrade:        {lacks: (*Manager).checkMove, begin: (*Manager).move, undoWithin: undoLongWithin},
		control.FaultDowngrade:      {lacks: (*Manager).checkMove, begin: (*Manager).move, undoWithin: undoLongWithin},
	}
}

// onMachine returns a function for mechanism.lacks that only calls `check`, which checks this machine.
func onMachine(check func() error) func(*Manager, context.Context, control.Fault) error {
	return func(*Manager, context.Context, control.Fault) error { return check() }
}

func (m *Manager) checkNeighbour(context.Context, control.Fault) error {
	return m.host.NeighbourAvailable()
}

func (m *Manager) neighbour(ctx context.Context, id string, f control.Fault, _ target) (effect, error) {
	stop, err := m.host.Neighbour(ctx, f.Writers, f.Size, func(why error) { m.markLost(id, why) })
	return effect{undo: stop}, err
}

func (m *Manager) delay(_ context.Context, _ string, f control.Fault, t target) (effect, error) {
	return onLinks(t.links, func(l Link) { l.Delay(f.Delay, f.Jitter, f.Seed) })
}

func (m *Manager) cut(_ context.Context, _ string, _ control.Fault, t target) (effect, error) {
	return onLinks(t.links, Link.Cut)
}

func onLinks(links []Link, do func(Link)) (effect, error) {
	return onEach(links, func(l Link) error { do(l); return nil }, func(_ context.Context, l Link) error { l.Restore(); return nil })
}

func (m *Manager) pause(_ context.Context, _ string, _ control.Fault, t target) (effect, error) {
	return onEach(t.names,
		func(name string) error { return m.host.Signal(name, syscall.SIGSTOP) },
		func(_ context.Context, name string) error { return ignoreGone(m.host.Signal(name, syscall.SIGCONT)) })
}

func (m *Manager) kill(ctx context.Context, _ string, _ control.Fault, t target) (effect, error) {
	return onEach(t.names, func(name string) error { return m.host.Kill(ctx, name) }, m.startAgain)
}

func (m *Manager) startAgain(ctx context.Context, name string) error {
	return m.host.Start(ctx, name, nil)
}

func (m *Manager) slowFsync(ctx context.Context, _ string, f control.Fault, t target) (effect, error) {
	delay := fsync.Delay{Delay: f.Delay, Jitter: f.Jitter, Files: f.Files, Seed: f.Seed}
	set := func(ctx context.Context, name string) error {
		agent, err := m.host.Fsync(name)
		if err != nil {
			return err
		}
		return agent.Set(ctx, delay)
	}
	e, err := onEach(t.names,
		func(name string) error { return set(ctx, name) },
		func(ctx context.Context, name string) error {
			agent, err := m.host.Fsync(name)
			if err != nil {
				return ignoreGone(err)
			}
			return ignoreGone(agent.Clear(ctx))
		})
	e.renew = set
	return e, err
}

func (m *Manager) slowService(ctx context.Context, _ string, f control.Fault, t target) (effect, error) {
	set := func(ctx context.Context, name string) error {
		return m.host.SetBehaviour(ctx, name, service.Behaviour{Delay: f.Delay, Jitter: f.Jitter, Fails: f.Fails, Throttle: f.Throttle, Seed: f.Seed})
	}
	e, err := onEach(t.names,
		func(name string) error { return set(ctx, name) },
		func(ctx context.Context, name string) error {
			return ignoreGone(m.host.SetBehaviour(ctx, name, service.Behaviour{}))
		})
	e.renew = set
	return e, err
}

func (m *Manager) rotateKey(_ context.Context, id string, _ control.Fault, t target) (effect, error) {
	return m.course(func() {
		ctx, cancel := context.WithTimeout(m.life, undoWithin)
		defer cancel()
		var kinds []string
		for _, name := range t.names {
			if kind := control.ComponentKind(name); !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
		for _, kind := range kinds {
			if err := m.host.RotateKey(ctx, kind); err != nil {
				m.markLost(id, err)
			}
		}
	}, func(context.Context) error { return nil }), nil
}

func (m *Manager) limitDescriptors(ctx context.Context, _ string, f control.Fault, t target) (effect, error) {
	return m.limit(ctx, OpenFiles, f.Limit, t)
}

// fillDisk limits the file size of a process, so that its files cannot grow.
func (m *Manager) fillDisk(ctx context.Context, _ string, _ control.Fault, t target) (effect, error) {
	return m.limit(ctx, FileSize, 0, t)
}

// limit lowers a resource limit of the target's processes: `of` is the limit and `soft` its new soft value. Undoing the
// returned effect restores the old limits.
func (m *Manager) limit(ctx context.Context, of Rlimit, soft uint64, t target) (effect, error) {
	var mu sync.Mutex
	was := map[string]uint64{}
	set := func(_ context.Context, name string) error {
		limit, err := m.host.SetLimit(name, of, soft)
		if err != nil {
			return err
		}
		mu.Lock()
		was[name] = limit
		mu.Unlock()
		if limit <= soft {
			return fmt.Errorf("the limit of %s of %s is %d, so the fault's limit of %d would not lower it", of, name, limit, soft)
		}
		return nil
	}
	e, err := onEach(t.names,
		func(name string) error { return set(ctx, name) },
		func(_ context.Context, name string) error {
			mu.Lock()
			limit, ok := was[name]
			mu.Unlock()
			if !ok {
				return nil
			}
			_, err := m.host.SetLimit(name, of, limit)
			return ignoreGone(err)
		})
	e.renew = set
	return e, err
}

// ignoreGone returns nil if err, an error from undoing a fault, means that the affected process has ended. The fault's
// effect ended with the process.
func ignoreGone(err error) error {
	if errors.Is(err, ErrNotRunning) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// onEach calls `do` for all elements at the same time. Undoing the returned effect calls `undo` for each element, even
// if `do` has failed for it.
func onEach[T any](all []T, do func(T) error, undo func(context.Context, T) error) (effect, error) {
	return effect{undo: func(ctx context.Context) error {
		return each(all, func(one T) error { return undo(ctx, one) })
	}}, each(all, do)
}

// each calls `do` for all elements at the same time and joins the errors.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, one := range all {
		wait.Go(func() { errs[i] = do(one) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// turnWithin is the maximum time that a fault waits until a restarted component serves again, before it restarts the
// next component. A component needs a few seconds, and up to ten times as long on a busy machine.
const turnWithin = 90 * time.Second

// restart ends and starts the components one after another. It continues with the next component when the previous one
// serves again.
func (m *Manager) restart(_ context.Context, id string, _ control.Fault, t target) (effect, error) {
	failed := "" // the component that could not be restarted
	return m.course(func() {
		for i, name := range t.names {
			if i > 0 {
				if err := m.awaitTurn(t.names[i-1]); err != nil {
					m.markLost(id, fmt.Errorf("%s was not restarted: %w", name, err))
					return
				}
			}
			if err := m.restartOne(name); err != nil {
				failed = name
				m.markLost(id, err)
				return
			}
		}
	}, func(ctx context.Context) error {
		if failed == "" {
			return nil
		}
		return m.startAgain(ctx, failed)
	}), nil
}

// course runs a momentary fault (one that ends by itself) in a goroutine. Undoing the returned effect waits until run
// has returned and then calls finish.
func (m *Manager) course(run func(), finish func(context.Context) error) effect {
	over := make(chan struct{})
	m.running.Go(func() {
		defer close(over)
		run()
	})
	return effect{over: over, undo: func(ctx context.Context) error {
		select {
		case <-over:
			return finish(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

func (m *Manager) restartOne(name string) error {
	ctx, cancel := context.WithTimeout(m.life, undoWithin)
	defer cancel()
	if err := m.host.Stop(ctx, name); err != nil {
		return err
	}
	return m.startAgain(ctx, name)
}

// awaitTurn waits until the component `after` serves again. It returns an error if the plane stops or turnWithin has
// passed.
func (m *Manager) awaitTurn(after string) error {
	ctx, cancel := context.WithTimeout(m.open, turnWithin)
	defer cancel()
	err := m.host.AwaitReady(ctx, after)
	if m.open.Err() != nil {
		return errClosed
	}
	return err
}

func (m *Manager) rehearse(_ context.Context, id string, _ control.Fault, _ target) (effect, error) {
	return m.course(func() {
		ctx, cancel := context.WithTimeout(m.life, undoLongWithin)
		defer cancel()
		if err := m.host.Rehearse(ctx); err != nil {
			m.markLost(id, err)
		}
	}, func(context.Context) error { return nil }), nil
}
