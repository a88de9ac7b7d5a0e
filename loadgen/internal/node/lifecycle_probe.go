package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// probe reports that the containers with the indexes `which` have started. Then it reports the success of those startup
// and readiness probes that succeed immediately.
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

// awaitsReady reports whether a container becomes Ready only some time after its start. A kubelet first tries the
// readiness probe at the start, when the container does not answer yet, so the probe fails. If the container has a
// startup probe, that probe has already succeeded, so the first try of the readiness probe succeeds.
func (l *lifecycle) awaitsReady(c *containerState) bool {
	return l.concerns(c) && l.of.ReadyAfter != scenario.Spread{} || c.spec.ReadinessProbe != nil && c.spec.StartupProbe == nil
}

// awaitReady makes container i Ready after the time that its PodLife and its readiness probe require. Until then the
// readiness probe fails. ran is how long the container has been running.
func (l *lifecycle) awaitReady(i int, ran time.Duration) {
	c := &l.model.containers[i]
	after := time.Duration(0)
	if l.concerns(c) {
		after = l.drawn(l.of.ReadyAfter, i, "ready")
	}
	if p := c.spec.ReadinessProbe; p != nil {
		after = probeSucceeds(p, after)
		if ran == 0 && p.InitialDelaySeconds <= 0 && l.k.plan.postsEvents() {
			// Two failures at the start: a kubelet tries again as soon as it has noticed that a container is not Ready.
			l.unhealthy(i, failsReadiness)
			l.unhealthy(i, failsReadiness)
		}
	}
	left := max(after-ran, 1)
	l.keepFailing(i, l.now().Add(left))
	l.after(timerKey{i, becomesReady}, left, func() { l.becomeReady(i) })
}

// probeSucceeds returns the time from a container's start until its readiness probe succeeds. The container passes the
// probe once it has run for `after`. A kubelet tries the probe once per period (pkg/kubelet/prober).
func probeSucceeds(p *corev1.Probe, after time.Duration) time.Duration {
	period := periodOf(p)
	after = max(after, time.Duration(p.InitialDelaySeconds)*time.Second)
	attempts := max(1, (after+period-1)/period) + time.Duration(max(1, p.SuccessThreshold)-1)
	return attempts * period
}

func (l *lifecycle) becomeReady(i int) {
	l.stop(timerKey{i, failsReadiness})
	l.model.containers[i].ready = true
	l.report()
	if l.concerns(&l.model.containers[i]) {
		l.armReadiness(i)
	}
}

func (l *lifecycle) armReadiness(i int) {
	if d := l.drawn(l.of.ReadinessFailsAfter, i, "readiness"); d > 0 {
		l.failProbe(i, failsReadiness, l.model.containers[i].spec.ReadinessProbe, d, func() { l.failReadiness(i) })
	}
}

// failProbe makes a probe of container i fail failureThreshold times, once per period, and then calls the function
// `then`. The last failure comes `after` from now. If probe is nil, or the nodes post no Events, failProbe simulates
// only the last failure.
func (l *lifecycle) failProbe(i int, key stage, probe *corev1.Probe, after time.Duration, then func()) {
	before, period := 0, time.Duration(0)
	if probe != nil && l.k.plan.postsEvents() {
		before, period = max(0, int(probe.FailureThreshold)-1), periodOf(probe)
	}
	first := max(0, after-time.Duration(before)*period)
	var failure func(left int)
	failure = func(left int) {
		l.unhealthy(i, key)
		if left == 0 {
			then()
			return
		}
		l.after(timerKey{i, key}, (after-first)/time.Duration(before), func() { failure(left - 1) })
	}
	l.after(timerKey{i, key}, first, func() { failure(before) })
}

// keepFailing makes the readiness probe of container i fail once per period until the time `until`. If `until` is zero,
// the probe fails until the container is Ready.
func (l *lifecycle) keepFailing(i int, until time.Time) {
	probe := l.model.containers[i].spec.ReadinessProbe
	if probe == nil || !l.k.plan.postsEvents() {
		return
	}
	if next := periodOf(probe); until.IsZero() || l.now().Add(next).Before(until) {
		l.after(timerKey{i, failsReadiness}, next, func() {
			l.unhealthy(i, failsReadiness)
			l.keepFailing(i, until)
		})
	}
}

func periodOf(probe *corev1.Probe) time.Duration {
	return time.Duration(max(1, probe.PeriodSeconds)) * time.Second
}

// unhealthy posts the Event for one failure of a probe of container i. The probe is the liveness probe if key is
// failsLiveness, and otherwise the readiness probe.
func (l *lifecycle) unhealthy(i int, key stage) {
	kind := "Readiness"
	if key == failsLiveness {
		kind = "Liveness"
	}
	l.announce(&l.model.containers[i], corev1.EventTypeWarning, "Unhealthy", kind+" probe failed: simulated by stormglass")
}

func (l *lifecycle) failReadiness(i int) {
	l.model.containers[i].ready = false
	l.count(lifeReadinessFailed)
	l.report()
	var until time.Time
	if d := l.drawn(l.of.ReadinessFailsFor, i, "unready"); d > 0 {
		until = l.now().Add(d)
		l.after(timerKey{i, becomesReady}, d, func() { l.becomeReady(i) })
	}
	if l.model.containers[i].spec.ReadinessProbe != nil && l.k.plan.postsEvents() {
		l.unhealthy(i, failsReadiness) // a kubelet tries again immediately
	}
	l.keepFailing(i, until)
}
