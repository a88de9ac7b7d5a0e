package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// undoWithin is the default time limit to undo a fault. undoLongWithin is the limit for faults that take longer.
const (
	undoWithin     = 30 * time.Second
	undoLongWithin = 5 * time.Minute
)

// active is one fault in the Manager's list. The Manager creates it when the fault claims the parts of the plane that
// it needs.
type active struct {
	status control.FaultStatus // guarded by Manager.mu
	claims []control.Claim
	effect effect
	work   sync.Mutex // held while the fault is undone or renewed, so that only one of them happens at a time

	abandon context.CancelCauseFunc // cancels the call of Begin that begins the fault
	clear   chan chan error         // requests to end the fault now; keep sends the result to the channel in the request
	gone    chan struct{}           // closed when the fault is completely undone
}

// effect holds the functions that undo and renew a fault's changes to the plane.
type effect struct {
	// undo undoes the fault's changes, even if Begin made only some of them. It may be called again after an error. Nil
	// means that there is nothing to undo.
	undo func(context.Context) error
	// renew applies the fault to the new process of a restarted component. It is nil for faults that do not need that.
	renew func(ctx context.Context, name string) error
	// over is closed when a momentary fault has ended by itself. It is nil for other faults.
	over <-chan struct{}
}

// keep waits until the fault's time is over, a client clears the fault, or the fault ends by itself. It then undoes the
// fault. A fault that cannot be undone stays in the list until the next request to clear it.
func (m *Manager) keep(a *active, ends time.Time) {
	defer m.running.Done()
	var due <-chan time.Time
	if !ends.IsZero() {
		timer := time.NewTimer(time.Until(ends))
		defer timer.Stop()
		due = timer.C
	}
	over := a.effect.over
	for {
		var reply chan error
		select {
		case <-due:
			due = nil
		case <-over:
			over = nil
		case reply = <-a.clear:
		case <-m.life.Done():
			return
		}
		err := m.undo(a)
		if reply != nil {
			reply <- err
		}
		if err == nil {
			return
		}
	}
}

// Renew applies the active faults of a restarted component to the component's new process.
func (m *Manager) Renew(ctx context.Context, name string) {
	m.mu.Lock()
	var lost []*active
	for _, a := range m.faults {
		// Check the effect last, because it is incomplete until the fault is active.
		if !a.status.Active.IsZero() && a.status.Ended.IsZero() && slices.Contains(a.status.On, name) && a.effect.renew != nil {
			lost = append(lost, a)
		}
	}
	m.mu.Unlock()
	for _, a := range lost {
		m.renew(ctx, a, name)
	}
}

func (m *Manager) renew(ctx context.Context, a *active, name string) {
	a.work.Lock()
	defer a.work.Unlock()
	select {
	case <-a.gone: // the fault was undone while renew waited for the lock
		return
	default:
	}
	if err := a.effect.renew(ctx, name); err != nil {
		m.markLost(a.status.ID, fmt.Errorf("cannot apply the fault to the new process of %s: %w", name, err))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publish(control.EventFaultBegin, time.Now(), a.status, describe(a.status)+", applied again to the new process of "+name)
}

// markLost records and publishes that a fault is no longer active on all its components, although its time is not over.
// Only the first reason is recorded in the fault's status.
func (m *Manager) markLost(id string, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.faults {
		if a.status.ID == id && a.status.Ended.IsZero() {
			a.status.Lost = cmp.Or(a.status.Lost, why.Error())
			m.publish(control.EventFaultEnd, time.Now(), a.status, fmt.Sprintf("%s is lost: %v", describe(a.status), why))
		}
	}
}

func (m *Manager) undo(a *active) error {
	ctx, cancel := context.WithTimeout(m.life, cmp.Or(m.mechanisms[a.status.Kind].undoWithin, undoWithin))
	defer cancel()
	a.work.Lock()
	defer a.work.Unlock()
	err := a.effect.undo(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if err != nil {
		a.status.Error = err.Error()
		m.publish(control.EventFaultEnd, now, a.status, fmt.Sprintf("%s could not be undone: %v", describe(a.status), err))
		return fmt.Errorf("fault %s, %s, could not be undone: %w", a.status.ID, a.status.Kind, err)
	}
	if !a.status.Active.IsZero() || a.status.Error != "" { // otherwise no event has announced this fault
		m.publish(control.EventFaultEnd, now, a.status, describe(a.status))
	}
	a.status.Ended, a.status.Error = now, ""
	close(a.gone)
	return nil
}

// rollback undoes the changes of a fault that could not begin. If that fails, the fault stays in the list, so that a
// client can clear it.
func (m *Manager) rollback(a *active, cause error) (control.FaultStatus, error) {
	if a.effect.undo == nil {
		close(a.gone)
	} else if err := m.undo(a); err != nil {
		go m.keep(a, time.Time{})
		return control.FaultStatus{}, fmt.Errorf("%w; and %w (to try again: controlplane fault clear %s)", cause, err, a.status.ID)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.status.Ended.IsZero() { // a waiting Clear returns this status, so Ended must be set
		a.status.Ended = time.Now()
	}
	m.faults = slices.DeleteFunc(m.faults, func(other *active) bool { return other == a })
	m.running.Done()
	return control.FaultStatus{}, cause
}

func (a *active) end(ctx context.Context, cause error) error {
	a.abandon(cause)
	reply := make(chan error, 1)
	select {
	case a.clear <- reply:
	case <-a.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Manager) publish(kind string, at time.Time, s control.FaultStatus, detail string) {
	component := ""
	if len(s.On) == 1 {
		component = s.On[0]
	}
	m.events.Append(control.Event{Time: at, Kind: kind, Component: component, Detail: "fault " + s.ID + ": " + detail})
}

// describe returns a short description of a fault, such as "pause of etcd-0".
func describe(s control.FaultStatus) string {
	if len(s.Components) == 0 { // faults of this kind have no components, or always the same components
		return s.Kind
	}
	return s.Kind + " of " + strings.Join(s.On, ", ")
}
