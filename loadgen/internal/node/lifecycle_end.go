package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// end is the end of a container's run.
func (l *lifecycle) end(i int, code int32, reason string) {
	c := &l.model.containers[i]
	l.exit(c, code, reason)
	for _, s := range []stage{becomesReady, failsReadiness, failsLiveness, ends} {
		l.stop(timerKey{i, s})
	}
	switch {
	case code == 0:
		c.ready = c.kind == initial
	default:
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
	case finished(l.model.phase()):
		l.finish()
	default:
		l.report()
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

// exit makes a running container one that has ended.
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
	c.ready, c.started = false, false
}

// restart starts a container again that has ended, after a kubelet's back-off.
func (l *lifecycle) restart(i int) {
	c := &l.model.containers[i]
	ended := c.exited().FinishedAt.Time
	delay := c.backOff.remaining(ended)
	again := func() {
		c.backOff.next(ended, l.now(), l.k.plan.restartMost)
		c.restarts++
		l.count(lifeRestarted)
		l.launch(i)
	}
	l.report()
	if delay == 0 {
		again()
		return
	}
	name := l.model.fullName()
	l.announce(c, corev1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.spec.Name, name))
	wait := requeued(delay, draw(l.k.plan.Seed, "back-off", l.p.namespace, l.p.name, c.spec.Name, strconv.Itoa(int(c.restarts))))
	l.after(timerKey{i, backsOff}, min(noticed, wait/2), func() {
		l.wait(c, "CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, c.spec.Name, name))
		l.report()
	})
	l.after(timerKey{i, starts}, wait, again)
}

// finish ends the pod: its phase is Succeeded or Failed.
func (l *lifecycle) finish() {
	l.cancel()
	for i := range l.model.containers {
		if c := &l.model.containers[i]; c.state.Running != nil { // a sidecar
			l.announce(c, corev1.EventTypeNormal, "Killing", "Stopping container "+c.spec.Name)
			l.exit(c, 0, "")
		}
	}
	l.become(ended)
	l.ended = true
	l.version++
	version, final := l.version, l.render()
	if l.k.plan.everyRequest() {
		last := *final // until its sandbox is gone
		last.Phase, last.Reason, last.Message = corev1.PodPending, "", ""
		if l.ran {
			last.Phase = corev1.PodRunning
		}
		last.Conditions = slices.Clone(final.Conditions)
		for i := range last.Conditions {
			if c := &last.Conditions[i]; c.Type == corev1.PodReadyToStartContainers {
				c.Status, c.Reason, c.Message = corev1.ConditionTrue, "", ""
			}
		}
		l.k.write(l.life, func() { l.write(version, &last, 0) })
	}
	pod := l.model.pod
	l.k.write(l.life, func() {
		l.k.unmount(l.life, l.p, pod, func() { l.writeFinal(final, 0) })
	})
}

// writeFinal is called without mu.
func (l *lifecycle) writeFinal(final *corev1.PodStatus, failures int) {
	k := l.k
	if !k.in(l.p, ended) {
		return
	}
	_, err := k.patchPodStatus(l.life.ctx, l.p, final)
	if err != nil {
		if !gone(err) {
			k.retry(l.life, failures, func() { l.writeFinal(final, failures+1) })
		}
		return
	}
	_ = k.readPod(l.life.ctx, l.p) // as a kubelet that looks whether it is to be deleted; counted
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
	l.model, l.events = podModel{}, eventLog{} // a node may keep many pods that have ended
	if l.deleted {
		l.remove()
	}
}

// sawDeletion takes in the deletion of a pod that has ended. The server itself removes one whose end it knows; of one
// that was deleted before, with a grace period, it awaits the kubelet's word.
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
	l.k.write(l.life, func() { l.k.remove(l.life, l.p, 0) })
}

// terminate ends the containers of a pod that is being deleted, in their time and within the grace period.
func (l *lifecycle) terminate(spec *corev1.Pod) {
	k := l.k
	l.cancel()
	start := l.model.pod.Status.StartTime
	l.model.take(spec)
	if start != nil {
		l.model.pod.Status.StartTime = start
	}
	stops, code := time.Duration(0), int32(0)
	for i := range l.model.containers {
		c := &l.model.containers[i]
		if c.state.Running == nil {
			continue
		}
		if l.p.counted {
			l.announce(c, corev1.EventTypeNormal, "Killing", "Stopping container "+c.spec.Name)
		}
		if l.concerns(c) {
			stops = max(stops, l.drawn(l.of.StopAfter, i, "stop"))
		}
	}
	if grace := graceOf(spec); stops > grace {
		l.count(lifeStopTimedOut)
		stops, code = grace, killed
	}
	stop := func() {
		k.write(l.life, func() {
			k.mu.Lock()
			l.model.stopping = true
			for i := range l.model.containers {
				if c := &l.model.containers[i]; c.state.Running != nil {
					l.exit(c, code, "")
				}
			}
			status := l.render()
			k.mu.Unlock()
			k.terminate(l.life, l.p, spec, status, 0)
		})
	}
	over := finished(spec.Status.Phase)
	if !over && stops > 0 {
		l.timers[timerKey{-1, ends}] = l.life.after(stops, stop)
	}
	l.become(stopping)
	if l.p.counted && k.plan.everyRequest() {
		k.write(l.life, func() { k.writeStopping(l.life, l.p, spec.Generation) })
	}
	switch {
	case over:
		k.write(l.life, func() { k.remove(l.life, l.p, 0) })
	case stops <= 0:
		stop()
	}
}

// graceOf is the time that a pod has to end.
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
