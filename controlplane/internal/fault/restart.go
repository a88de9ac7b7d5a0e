package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// turnWithin bounds how long a component that was restarted may take to serve again,
// before the next one's turn. Upstream needs seconds, on a busy machine ten times that.
const turnWithin = 90 * time.Second

// restart ends the components in order and starts each as soon as it is gone.
func (m *Manager) restart(_ context.Context, id string, _ control.Fault, t target) (effect, error) {
	over := make(chan struct{})
	failed := "" // half-way
	m.running.Go(func() {
		defer close(over)
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
	})
	return effect{over: over, undo: func(ctx context.Context) error {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
		if failed == "" {
			return nil
		}
		return m.startAgain(ctx, failed)
	}}, nil
}

func (m *Manager) restartOne(name string) error {
	ctx, cancel := context.WithTimeout(m.life, undoWithin)
	defer cancel()
	if err := m.host.Stop(ctx, name); err != nil {
		return err
	}
	return m.startAgain(ctx, name)
}

// awaitTurn returns when a component serves again, or with an error when the plane stops.
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
	over := make(chan struct{})
	m.running.Go(func() {
		defer close(over)
		ctx, cancel := context.WithTimeout(m.life, undoLongWithin)
		defer cancel()
		if err := m.host.Rehearse(ctx); err != nil {
			m.markLost(id, err)
		}
	})
	return effect{over: over, undo: func(ctx context.Context) error {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, nil
}
