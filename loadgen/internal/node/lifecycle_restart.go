package node

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// restart reports that a container has ended, and starts it again immediately or after its back-off.
func (l *lifecycle) restart(i int) {
	l.report()
	l.tryRestart(i)
}

// tryRestart simulates a kubelet's attempt to start an ended container (doBackOff in pkg/kubelet/kuberuntime). An
// attempt during the back-off fails. The kubelet reports the failure at its next sync of the pod: when the back-off is
// over or after resyncInterval, whichever is earlier, plus a jitter.
func (l *lifecycle) tryRestart(i int) {
	c := &l.model.containers[i]
	ended := c.state.Terminated.FinishedAt.Time
	delay := c.backOff.remaining(ended)
	left := ended.Add(delay).Sub(l.now())
	if left <= 0 {
		l.startAgain(i, ended)
		return
	}
	l.failRestart(c, delay)
	wait := requeued(left, l.jitter(c, "back-off"))
	l.after(timerKey{i, starts}, wait, func() {
		if c.shown != c.failing.Reason {
			l.report()
		}
		if ended.Add(delay).After(l.now()) {
			l.tryRestart(i)
			return
		}
		l.after(timerKey{i, starts}, startTakes, func() { l.startAgain(i, ended) })
	})
}

// failRestart records a failed attempt to start a container during its back-off, as CrashLoopBackOff.
func (l *lifecycle) failRestart(c *containerState, delay time.Duration) {
	name := l.model.fullName()
	l.announce(c, corev1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.spec.Name, name))
	c.attempts++
	c.failing = &corev1.ContainerStateWaiting{
		Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, c.spec.Name, name),
	}
}

// jitter returns a pseudo-random number from 0 to 1 for the purpose `what`. It differs for each attempt to start a
// container.
func (l *lifecycle) jitter(c *containerState, what string) float64 {
	return draw(l.k.plan.Seed, what, l.p.namespace, l.p.name, c.spec.Name, strconv.Itoa(int(c.restarts)), strconv.Itoa(c.attempts))
}

// startAgain restarts a container and sets its next back-off. ended is the time at which its current back-off began.
func (l *lifecycle) startAgain(i int, ended time.Time) {
	c := &l.model.containers[i]
	c.backOff.next(ended, l.now(), l.k.plan.restartMost)
	c.restarts++
	l.count(lifeRestarted)
	l.launch(i)
}

// failLiveness simulates how a kubelet stops a container after a failed liveness probe, and restarts it without a
// status report in between. If the PodLife has a stopAfter below the grace period, the container ends by itself after
// stopAfter. Otherwise the kubelet kills the container at the end of the grace period.
func (l *lifecycle) failLiveness(i int) {
	c := &l.model.containers[i]
	l.count(lifeLivenessFailed)
	l.stop(timerKey{i, ends})
	again := l.model.policy(c) != corev1.RestartPolicyNever
	message := fmt.Sprintf("Container %s failed liveness probe", c.spec.Name)
	switch {
	case again:
		message += ", will be restarted"
	case !l.model.others(c):
		message = "Stopping container " + c.spec.Name // the whole pod is killed
	}
	l.announce(c, corev1.EventTypeNormal, "Killing", message)
	takes, code := killGrace(l.model.pod, c.spec), int32(killed)
	if stops := l.drawn(l.of.StopAfter, i, "stop"); stops > 0 && stops < takes {
		takes, code = stops, 0
	}
	l.after(timerKey{i, ends}, takes, func() { l.killed(i, code, again) })
}

// killed ends a container that failed its liveness probe. If `again` is true, it restarts the container.
func (l *lifecycle) killed(i int, code int32, again bool) {
	c := &l.model.containers[i]
	before := c.last
	l.exit(c, code, "")
	l.stopStages(i)
	c.failures++
	l.count(endOf(c, code))
	if !again {
		if l.settle(); !l.model.over() {
			l.report()
			return
		}
		l.model.noSandbox = true
		l.finish()
		return
	}
	// A kubelet kills and restarts the container in the same sync of the pod. It measures the back-off from the end of
	// the run before this one.
	if before == nil {
		c.restarts++
		l.count(lifeRestarted)
		l.launch(i)
		return
	}
	ended := before.FinishedAt.Time
	if delay := c.backOff.remaining(ended); ended.Add(delay).After(l.now()) {
		l.failRestart(c, delay)
		l.settle()
		l.restart(i)
		return
	}
	l.startAgain(i, ended)
}

// others reports whether any regular container except c runs or will run.
func (m *podModel) others(c *containerState) bool {
	for i := range m.containers {
		o := &m.containers[i]
		if o != c && o.kind == regular && (o.state.Terminated == nil || m.restarts(o, o.state.Terminated.ExitCode)) {
			return true
		}
	}
	return false
}

// killGrace returns the grace period of a container that failed its liveness probe (setTerminationGracePeriod in
// pkg/kubelet/kuberuntime).
func killGrace(pod *corev1.Pod, c *corev1.Container) time.Duration {
	seconds := pod.Spec.TerminationGracePeriodSeconds
	if p := c.LivenessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		seconds = p.TerminationGracePeriodSeconds
	}
	if seconds == nil {
		return minGrace
	}
	return max(minGrace, time.Duration(*seconds)*time.Second)
}
