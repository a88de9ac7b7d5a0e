package node

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// end ends the current run of container i. Then it starts the next containers, restarts the container, or ends the pod.
func (l *lifecycle) end(i int, code int32, reason string) {
	c := &l.model.containers[i]
	l.exit(c, code, reason)
	l.stopStages(i)
	if code != 0 {
		c.failures++
	}
	if c.kind != initial || code != 0 {
		l.count(endOf(c, code))
	}
	l.settle()
	switch {
	case c.kind == initial && code == 0:
		l.report()
		l.initialize(i + 1)
	case l.model.restarts(c, code):
		l.restart(i)
	case l.model.over():
		l.finish()
	default:
		l.report()
	}
}

func (l *lifecycle) stopStages(i int) {
	for _, s := range []stage{becomesReady, failsReadiness, failsLiveness, ends} {
		l.stop(timerKey{i, s})
	}
}

func endOf(c *containerState, code int32) string {
	switch {
	case code == 0:
		return lifeCompleted
	case c.kind == initial:
		return lifeInitFailed
	case c.state.Terminated.Reason == scenario.OOMKilled:
		return lifeOOMKilled
	}
	return lifeFailed
}

func (l *lifecycle) exit(c *containerState, code int32, reason string) {
	if reason == "" {
		if reason = "Completed"; code != 0 {
			reason = "Error"
		}
	}
	ended := &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: c.state.Running.StartedAt, FinishedAt: metav1.NewTime(l.now()), ContainerID: l.model.containerID(c),
	}
	c.state = corev1.ContainerState{Terminated: ended}
	c.ready, c.started = c.kind == initial && code == 0, false
}

// finish ends a pod in which all containers except sidecars have ended. It kills the sidecars along with the pod's
// sandbox. Then the phase becomes Succeeded or Failed.
func (l *lifecycle) finish() {
	l.cancel()
	l.become(ended)
	l.ended = true
	if l.model.sidecarsRun() { // these sidecars are killed with the sandbox
		if l.k.plan.everyRequest() {
			l.report()
		}
		l.killing()
		l.exitAll(0)
		l.model.noSandbox = true
	}
	if l.k.plan.everyRequest() {
		l.version++
		version, status := l.version, l.render()
		status.Phase = corev1.PodPending
		if l.ran {
			status.Phase = corev1.PodRunning
		}
		l.write(version, status)
	}
	l.complete()
}

// complete reports the final status of a pod whose containers have ended.
func (l *lifecycle) complete() {
	l.become(ended)
	l.ended = true
	l.model.stopped, l.model.noSandbox = true, true
	l.version++
	final, pod := abandoned(l.model.pod, l.render()), l.model.pod
	l.k.write(l.life, func() {
		l.k.unmount(l.life, l.p, pod, func() { l.writeFinal(final) })
	})
}

func (m *podModel) sidecarsRun() bool {
	return slices.ContainsFunc(m.containers, func(c containerState) bool { return c.kind == sidecar && c.state.Running != nil })
}

// killing posts a Killing Event for each running container.
func (l *lifecycle) killing() {
	for i := range l.model.containers {
		if c := &l.model.containers[i]; c.state.Running != nil {
			l.announce(c, corev1.EventTypeNormal, "Killing", "Stopping container "+c.spec.Name)
		}
	}
}

func (l *lifecycle) exitAll(code int32) {
	for i := range l.model.containers {
		if c := &l.model.containers[i]; c.state.Running != nil {
			l.exit(c, code, "")
		}
	}
}

// stopping returns how long the running containers take to stop, and their exit code. If they need longer than the
// grace period, it returns the grace period and the exit code of SIGKILL.
func (l *lifecycle) stopping(grace time.Duration) (takes time.Duration, code int32) {
	for i := range l.model.containers {
		if c := &l.model.containers[i]; c.state.Running != nil && l.concerns(c) {
			takes = max(takes, l.drawn(l.of.StopAfter, i, "stop"))
		}
	}
	if grace = max(grace, minGrace); takes > grace {
		l.count(lifeStopTimedOut)
		return grace, killed
	}
	return takes, 0
}

// writeFinal writes the final status of a pod, and retries after errors. The caller does not hold mu.
func (l *lifecycle) writeFinal(final *corev1.PodStatus) {
	l.k.persist(l.life, func() error {
		if !l.k.in(l.p, ended) {
			return nil
		}
		if _, err := l.k.patchPodStatus(l.life.ctx, l.p, final); err != nil {
			return err
		}
		_ = l.k.readPod(l.life.ctx, l.p) // a kubelet checks here whether the pod was deleted; errors are counted
		l.wroteFinal()
		return nil
	})
}

func (l *lifecycle) wroteFinal() {
	k := l.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods[l.p.uid] != l.p {
		return
	}
	l.done = true
	if l.p.ip.IsValid() {
		k.ips.release(l.p.ip)
		l.p.ip = netip.Addr{}
	}
	l.model, l.events = podModel{}, eventLog{} // free memory: a node may keep many ended pods
	if l.deleted {
		l.remove()
	}
}

// sawDeletion processes the deletion of a pod whose containers have ended. If the API server received the final status
// before the deletion, the API server removes the pod itself. Otherwise the deletion has a grace period, and the API
// server waits for the kubelet to remove the pod.
func (l *lifecycle) sawDeletion(object []byte) {
	spec := l.k.decodePod(object)
	if spec == nil || l.deleted || spec.DeletionGracePeriodSeconds != nil && *spec.DeletionGracePeriodSeconds == 0 {
		return
	}
	l.deleted = true
	if l.done {
		l.remove()
	}
}

func (l *lifecycle) remove() {
	l.p.state = stopping
	l.k.write(l.life, func() { l.k.remove(l.life, l.p) })
}

// terminate stops the containers of a pod that is being deleted. They end after the stop time in the PodLife, or after
// the grace period if the grace period is shorter.
func (l *lifecycle) terminate(spec *corev1.Pod) {
	k := l.k
	l.cancel()
	start := l.model.pod.Status.StartTime
	l.model.take(spec)
	l.model.pod.Status.StartTime = cmp.Or(start, spec.Status.StartTime)
	l.killing()
	takes, code := l.stopping(graceOf(spec))
	over := finished(spec.Status.Phase)
	stop := func() {
		k.write(l.life, func() {
			k.mu.Lock()
			l.exitAll(code)
			l.model.stopped, l.model.noSandbox, l.p.room = true, true, nil
			status := l.render()
			k.mu.Unlock()
			k.terminate(l.life, l.p, spec, status)
		})
	}
	if !over && takes > 0 {
		l.timers[timerKey{-1, ends}] = l.life.after(takes, stop)
	}
	failing := l.model.showsReason()
	l.model.deleted = true
	l.become(stopping)
	if k.plan.everyRequest() {
		if failing {
			l.reportStopping()
		} else {
			k.write(l.life, func() { k.writeStopping(l.life, l.p, spec.Generation) })
		}
	}
	switch {
	case over:
		k.write(l.life, func() { k.remove(l.life, l.p) })
	case takes <= 0:
		stop()
	}
}

// reportStopping reports the status of a pod that is being deleted and has a container that did not start. During the
// deletion, the status does not say why the container did not start.
func (l *lifecycle) reportStopping() {
	status := l.render()
	l.k.write(l.life, func() {
		if l.k.in(l.p, stopping) {
			_, _ = l.k.patchPodStatus(l.life.ctx, l.p, status) // errors are counted; the next report includes this status
		}
	})
}

// showsReason reports whether the last status said why a container does not start.
func (m *podModel) showsReason() bool {
	return slices.ContainsFunc(m.containers, func(c containerState) bool { return c.shown != "" })
}

// minGrace is a kubelet's minimum grace period for a container (pkg/kubelet/kuberuntime).
const minGrace = 2 * time.Second

// graceOf returns the grace period of a pod's termination: from the deletion if set, otherwise from the spec, otherwise
// 30 s.
func graceOf(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		seconds = *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}
