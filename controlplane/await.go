package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// How a start waits: how often it looks, and how long in all for one process.
// Upstream needs 1 to 4 s each on two cores; on a busy machine ten times that.
const (
	pollInterval = 25 * time.Millisecond
	readyWithin  = 90 * time.Second
)

// await waits until a process of a starting plane is ready. It fails at once
// when that process, or one that was started before it, ends. begun is when the
// first of its kind was started.
func (p *Plane) await(ctx context.Context, m *member, begun time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errNotReady)
	defer cancel()
	err := p.untilReady(ctx, m, m.life, begun, p.ended)
	switch {
	case err == nil:
		p.progress("%-26s ready after %.1f s, pid %d", m.process.Name, m.readyAfter.Seconds(), m.child.PID)
	case context.Cause(ctx) == errNotReady:
		err = &componentError{fmt.Errorf("%s is not ready after %v: %w%s", m.process.Name, readyWithin, err, endOf(m.life, p.layout.Log(m.process.Name)))}
	}
	return err
}

var errNotReady = errors.New("not ready in time")

// untilReady asks a process over and over until it is ready, it has ended, or
// another reason is found not to wait any longer.
func (p *Plane) untilReady(ctx context.Context, m *member, l *life, begun time.Time, ended func() error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ask, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := p.probe.ready(ask, m.process, begun)
		cancel()
		if err == nil {
			p.mu.Lock()
			l.ready, l.readyAfter = true, time.Since(l.child.Started)
			p.mu.Unlock()
			close(l.serves)
			return nil
		}
		if ended := ended(); ended != nil {
			return ended
		}
		select {
		case <-l.child.Done():
			return ended()
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// ended is the error of the first process, in the order of starting, that has
// ended: the others may have ended for want of it. It is nil if all live.
func (p *Plane) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		select {
		case <-m.child.Done():
		default:
			continue
		}
		return p.endError(m)
	}
	return nil
}

// endError tells how a process ended. The caller holds the lock.
func (p *Plane) endError(m *member) error {
	if m.ready {
		return p.diedError(m.process.Name, m.life)
	}
	return p.startError(m)
}

// componentError says why a component failed, and where its log is.
type componentError struct{ error }

func (e *componentError) Unwrap() error { return e.error }

// startError tells of a process that ended before it was ready.
func (p *Plane) startError(m *member) error {
	name := m.process.Name
	if strings.Contains(m.child.Output(), "address already in use") {
		return fmt.Errorf("%s could not listen on %s: %w", name, m.process.Address, errPortTaken)
	}
	return &componentError{fmt.Errorf("%s %s before it was ready%s", name, m.child.Exit(), endOf(m.life, p.layout.Log(name)))}
}

// diedError tells of a process that ended while the plane was up.
func (p *Plane) diedError(name string, l *life) error {
	return &componentError{fmt.Errorf("%s died after %s: it %s%s", name, l.child.Exit().At.Sub(l.child.Started).Round(time.Millisecond), l.ending(), endOf(l, p.layout.Log(name)))}
}
