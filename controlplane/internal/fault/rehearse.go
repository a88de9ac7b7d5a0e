package fault

import (
	"context"

	"github.com/stormglass/stormglass/controlplane/control"
)

// rehearse has the host restore etcd from a snapshot. The fault is in force
// meanwhile, and over when all serves again, or when the host has given up and
// gone back to what etcd held: that is reported as a lost fault.
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
