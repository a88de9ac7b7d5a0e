package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/disk"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
)

// apply puts a fault in force. On an error the effect is what was done so far.
func (m *Manager) apply(ctx context.Context, id string, f control.Fault, t target) (effect, error) {
	switch f.Kind {
	case control.FaultSlowFsync:
		return m.slowFsync(ctx, f, t.names)
	case control.FaultDiskContention:
		stop, err := m.host.Neighbour(ctx, cmp.Or(f.Writers, disk.DefaultWriters), cmp.Or(f.Size, disk.DefaultSize), func(why error) { m.lose(id, why) })
		return effect{undo: stop}, err
	case control.FaultNetworkDelay:
		return onEach(t.links, func(l Link) error { return l.Delay(f.Delay, f.Jitter, f.Seed) }, restore)
	case control.FaultPartition:
		return onEach(t.links, func(l Link) error { l.Cut(); return nil }, restore)
	case control.FaultPause:
		return onEach(t.names,
			func(name string) error { return m.host.Signal(name, syscall.SIGSTOP) },
			func(_ context.Context, name string) error { return unlessGone(m.host.Signal(name, syscall.SIGCONT)) })
	case control.FaultKill:
		return onEach(t.names, func(name string) error { return m.host.Kill(ctx, name) }, m.startAgain)
	case control.FaultRestart:
		return m.restart(id, t.names), nil
	case control.FaultRestore:
		return m.rehearse(id), nil
	case control.FaultDescriptors:
		return m.limitDescriptors(ctx, f, t.names)
	case control.FaultWebhook:
		return m.slowWebhook(ctx, id, f)
	case control.FaultQuota:
		return m.smallQuota(ctx, f, t.names)
	}
	return effect{}, errors.New("no such kind of fault") // Problems has refused it
}

func (m *Manager) startAgain(ctx context.Context, name string) error {
	return m.host.Start(ctx, name, nil)
}

func restore(_ context.Context, l Link) error {
	l.Restore()
	return nil
}

// slowFsync asks the agents in the members' processes.
func (m *Manager) slowFsync(ctx context.Context, f control.Fault, names []string) (effect, error) {
	delay := fsync.Delay{Delay: f.Delay, Jitter: f.Jitter, Files: f.Files, Seed: f.Seed}
	set := func(ctx context.Context, name string) error {
		agent, err := m.host.Fsync(name)
		if err != nil {
			return err
		}
		return agent.Set(ctx, delay)
	}
	e, err := onEach(names,
		func(name string) error { return set(ctx, name) },
		func(ctx context.Context, name string) error {
			agent, err := m.host.Fsync(name)
			if err != nil {
				return unlessGone(err)
			}
			return unlessGone(agent.Clear(ctx))
		})
	e.renew = set
	return e, err
}

// limitDescriptors remembers what each limit was.
func (m *Manager) limitDescriptors(ctx context.Context, f control.Fault, names []string) (effect, error) {
	var mu sync.Mutex
	was := map[string]uint64{}
	set := func(_ context.Context, name string) error {
		limit, err := m.host.LimitDescriptors(name, f.Limit)
		if err != nil {
			return err
		}
		mu.Lock()
		was[name] = limit
		mu.Unlock()
		if limit <= f.Limit {
			return fmt.Errorf("the limit of open files of %s is %d, which %d does not lower", name, limit, f.Limit)
		}
		return nil
	}
	e, err := onEach(names,
		func(name string) error { return set(ctx, name) },
		func(_ context.Context, name string) error {
			mu.Lock()
			limit, ok := was[name]
			mu.Unlock()
			if !ok {
				return nil
			}
			_, err := m.host.LimitDescriptors(name, limit)
			return unlessGone(err)
		})
	e.renew = set
	return e, err
}

// unlessGone takes the error of undoing what was done to a process for none if the
// process is gone: what was done is gone with it. The component may have ended
// by itself, and wait for its next start.
func unlessGone(err error) error {
	if errors.Is(err, ErrNotRunning) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// onEach does something to each at the same time; the effect undoes it on each,
// done or not.
func onEach[T any](all []T, do func(T) error, undo func(context.Context, T) error) (effect, error) {
	return effect{undo: func(ctx context.Context) error {
		return each(all, func(one T) error { return undo(ctx, one) })
	}}, each(all, do)
}

// each calls a function on all at the same time and joins the errors.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, one := range all {
		wait.Go(func() { errs[i] = do(one) })
	}
	wait.Wait()
	return errors.Join(errs...)
}
