package node

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// probe reports containers that have started, and then each of their probes that succeeds at once.
func (l *lifecycle) probe(which []int) {
	any := func(f func(*containerState) bool) bool {
		return slices.ContainsFunc(which, func(i int) bool {
			c := &l.model.containers[i]
			return c.kind == regular && f(c)
		})
	}
	become := func(may func(*containerState) bool) {
		for _, i := range which {
			if c := &l.model.containers[i]; c.kind == regular && may(c) {
				c.started, c.ready = true, c.ready || !l.awaitsReady(c)
			}
		}
	}
	become(func(c *containerState) bool { return c.started && c.spec.ReadinessProbe == nil })
	l.report()
	if any(func(c *containerState) bool { return !c.started }) {
		for _, i := range which {
			l.model.containers[i].started = true
		}
		if any(func(c *containerState) bool { return c.spec.ReadinessProbe != nil || l.awaitsReady(c) }) {
			l.report()
		}
	}
	if any(func(c *containerState) bool { return !c.ready && !l.awaitsReady(c) }) {
		become(func(*containerState) bool { return true })
		l.report()
	}
}

// awaitsReady reports whether a container is Ready some time after its start only.
func (l *lifecycle) awaitsReady(c *containerState) bool {
	return l.concerns(c) && l.of.ReadyAfter != scenario.Spread{}
}

func (l *lifecycle) becomeReady(i int) {
	l.model.containers[i].ready = true
	l.report()
	l.armReadiness(i)
}

func (l *lifecycle) armReadiness(i int) {
	if d := l.drawn(l.of.ReadinessFailsAfter, i, "readiness"); d > 0 {
		l.after(timerKey{i, failsReadiness}, d, func() { l.failReadiness(i) })
	}
}

func (l *lifecycle) failReadiness(i int) {
	c := &l.model.containers[i]
	c.ready = false
	l.count(lifeReadinessFailed)
	l.announce(c, corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: simulated by stormglass")
	l.report()
	if d := l.drawn(l.of.ReadinessFailsFor, i, "unready"); d > 0 {
		l.after(timerKey{i, becomesReady}, d, func() { l.becomeReady(i) })
	}
}

func (l *lifecycle) failLiveness(i int) {
	c := &l.model.containers[i]
	l.count(lifeLivenessFailed)
	message := fmt.Sprintf("Container %s failed liveness probe", c.spec.Name)
	if l.model.restarts(c, killed) {
		message += ", will be restarted"
	}
	l.announce(c, corev1.EventTypeWarning, "Unhealthy", "Liveness probe failed: simulated by stormglass")
	l.announce(c, corev1.EventTypeNormal, "Killing", message)
	l.end(i, killed, "")
}
