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
		err = fmt.Errorf("%s is not ready after %v: %w%s", m.process.Name, readyWithin, err, lastLines(m.life))
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
		return endError(m)
	}
	return nil
}

// endError tells how a process ended. The caller holds the lock.
func endError(m *member) error {
	if m.ready {
		return diedError(m.process.Name, m.life)
	}
	return startError(m)
}

// startError tells of a process that ended before it was ready.
func startError(m *member) error {
	if strings.Contains(m.child.Output(), "address already in use") {
		return fmt.Errorf("%s could not listen on %s: %w", m.process.Name, m.process.Address, errPortTaken)
	}
	return fmt.Errorf("%s %s before it was ready%s", m.process.Name, m.child.Exit(), lastLines(m.life))
}

// diedError tells of a process that ended while the plane was up.
func diedError(name string, l *life) error {
	return fmt.Errorf("%s died after %s: it %s%s", name, l.child.Exit().At.Sub(l.child.Started).Round(time.Millisecond), l.ending(), lastLines(l))
}

// lastLines quotes the end of a process's log.
func lastLines(l *life) string {
	lines := l.child.LastLines(8)
	if len(lines) == 0 {
		return "; its log is empty"
	}
	for i, line := range lines {
		if len(line) > maxLogLine {
			lines[i] = strings.ToValidUTF8(line[:maxLogLine], "") + "..."
		}
	}
	return "; the last lines of its log:\n  " + strings.Join(lines, "\n  ")
}

// maxLogLine cuts lines of etcd's log, which may carry a whole stack.
const maxLogLine = 300
