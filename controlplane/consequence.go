package controlplane

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Components end by themselves under faults, and are meant to: a scheduler or
// controller manager that cannot renew its lease, an API server that is started
// while etcd has no quorum. In production the kubelet (or systemd) starts them
// again, so the supervisor does. Without a fault such an end is the plane's.

// aftermath is how long after a fault an exit may still be its doing: a lease of
// 15 s that was renewed for the last time just before the fault, and a start that
// waits 10 s for an API server.
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

// underFault tells whether what happens at a time may be a fault's doing.
func underFault(faults []control.FaultStatus, at time.Time) bool {
	for _, f := range faults {
		if f.Ended.IsZero() || at.Sub(f.Ended) < aftermath {
			return true
		}
	}
	return false
}

// restart starts a component again that has ended by itself, if that was a fault's
// doing. A signal is nobody's doing but the kernel's (out of memory) or a person's.
func (p *Plane) restart(m *member, l *life) bool {
	exit := l.child.Exit()
	if exit.Signal != "" || !underFault(p.faults.List(), exit.At) {
		return false
	}
	p.mu.Lock()
	if !p.settled {
		p.mu.Unlock()
		return false
	}
	l.expected = true // so that Start takes it for one that may be started
	if exit.At.Sub(l.child.Started) > backoffReset {
		m.crashes = 0
	}
	m.crashes++
	wait := backoff(m.crashes)
	p.mu.Unlock()
	p.progress("%-26s %s under a fault; started again in %v, as the kubelet would%s", m.process.Name, exit, wait, lastLines(l))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.closing.Done():
		return true
	case <-timer.C:
	}
	if err := p.Start(p.closing, m.process.Name, l.over); err != nil && p.closing.Err() == nil {
		p.fail(err)
	}
	p.faults.Renew(p.closing, m.process.Name)
	return true
}
