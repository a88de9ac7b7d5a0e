package controlplane

import (
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Components end by themselves under faults, and are meant to: a scheduler or
// controller manager that cannot renew its lease, an API server that is started
// while etcd has no quorum, a process that the kernel kills because it has grown
// too large. In production the kubelet (or systemd) starts them again, and does
// not ask how they ended, so the supervisor does. Without a fault such an end is
// the plane's.

// aftermath is how long after a fault, or after a start that it made necessary, an
// exit may still be its doing: a lease of 15 s that was renewed for the last time
// just before, and a start that waits 10 s for an API server.
const aftermath = 30 * time.Second

// The kubelet's back-off: the first restart is immediate, then it waits 10 s, twice
// as long each time, up to five minutes, and begins anew after ten good minutes.
const (
	backoffBase  = 10 * time.Second
	backoffMax   = 5 * time.Minute
	backoffReset = 2 * backoffMax
)

// backoff is how long to wait before a component that has ended crashes times in
// a row is started again.
func backoff(crashes int) time.Duration {
	wait := time.Duration(0)
	for n := 1; n < crashes && wait < backoffMax; n++ {
		wait = max(2*wait, backoffBase)
	}
	return min(wait, backoffMax)
}

// underFault tells whether the end of a process at a time may be a fault's doing:
// one is in force or has just ended, or the component had just been revived, which
// with its back-off may be minutes after the fault.
func underFault(faults []control.FaultStatus, revived, at time.Time) bool {
	soonAfter := func(cause time.Time) bool { return at.Sub(cause) < aftermath }
	return soonAfter(revived) || slices.ContainsFunc(faults, func(f control.FaultStatus) bool {
		return f.Ended.IsZero() || soonAfter(f.Ended)
	})
}

// restart starts a component again that has ended by itself, if that was a fault's
// doing, and returns when it has, or when somebody else has taken that over.
func (p *Plane) restart(m *member, l *life) bool {
	exit := l.child.Exit()
	faults := p.faults.List()
	p.mu.Lock()
	if !p.settled || !underFault(faults, m.revived, exit.At) {
		p.mu.Unlock()
		return false
	}
	l.expected = true
	if exit.At.Sub(l.child.Started) > backoffReset {
		m.crashes = 0
	}
	m.crashes++
	wait := backoff(m.crashes)
	p.mu.Unlock()
	p.progress("%-26s %s under a fault; started again in %v, as the kubelet would%s", m.process.Name, l.ending(), wait, endOf(l, p.layout.Log(m.process.Name)))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.closing.Done():
		return true
	case <-timer.C:
	}
	revived, err := p.revive(m, l)
	switch {
	case p.closing.Err() != nil: // that may be why it was not
	case err != nil:
		p.fail(err)
	case revived:
		p.faults.Renew(p.closing, m.process.Name)
	}
	return true
}

// revive starts a component whose process has ended by itself, unless a fault has
// taken it over meanwhile, to keep it away or to start it in its own time.
func (p *Plane) revive(m *member, l *life) (bool, error) {
	m.change.Lock()
	defer m.change.Unlock()
	p.mu.Lock()
	due := m.life == l && !l.claimed
	if due {
		m.revived = time.Now()
	}
	p.mu.Unlock()
	if !due {
		return false, nil
	}
	return true, p.startAgain(m, l.over)
}
