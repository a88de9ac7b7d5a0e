package node

import (
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The annotations of a pod whose containers end by themselves: how long after their start, as "3s", and with which
// code, 0 without.
const (
	exitAfter = "stormglass.dev/exit-after"
	exitCode  = "stormglass.dev/exit-code"
)

// exitOf reads when a pod's containers end by themselves, and with which code. Those of a pod that would start them
// again run on.
func exitOf(pod *corev1.Pod) (after time.Duration, code int32, ends bool) {
	after, err := time.ParseDuration(pod.Annotations[exitAfter])
	if err != nil {
		return 0, 0, false
	}
	n, err := strconv.ParseInt(pod.Annotations[exitCode], 10, 32)
	if err != nil {
		n = 0
	}
	never := pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && n == 0
	return after, int32(n), never
}

// ranFor is how long a pod's containers have run, by its status; containers of a failed node run on.
func ranFor(pod *corev1.Pod, now time.Time) time.Duration {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			return max(0, now.Sub(c.State.Running.StartedAt.Time))
		}
	}
	return 0
}

// exits ends a running pod's containers when its annotations say. Called with k.mu held.
func (k *kubelet) exits(life *life, p *pod, spec *corev1.Pod) {
	after, code, ends := exitOf(spec)
	if !ends {
		return
	}
	life.after(max(0, after-ranFor(spec, life.clock.Now())), func() {
		k.mu.Lock()
		runs := k.pods[p.uid] == p && p.state == running
		if runs {
			p.state = ended
			k.ledger.podsRunning.Add(-1)
		}
		k.mu.Unlock()
		if runs {
			k.writeSteps(life, p, []step{func(_, _ netip.Addr, now time.Time) *corev1.PodStatus {
				s := exitedStatus(spec, code, now)
				s.Phase = corev1.PodRunning // until its sandbox is gone
				return s
			}})
			k.write(life, func() {
				k.unmount(life, p, spec, func() { k.writeExit(life, p, spec, code, 0) })
			})
		}
	})
}

func (k *kubelet) writeExit(life *life, p *pod, spec *corev1.Pod, code int32, failures int) {
	if !k.in(p, ended) {
		return
	}
	_, err := k.patchPodStatus(life.ctx, p, exitedStatus(spec, code, life.clock.Now()))
	switch {
	case err == nil:
		_ = k.readPod(life.ctx, p) // as a kubelet that looks whether it is to be deleted; counted
	case !gone(err):
		k.retry(life, failures, func() { k.writeExit(life, p, spec, code, failures+1) })
	}
}

// exitedStatus is a pod whose containers have ended by themselves.
func exitedStatus(pod *corev1.Pod, code int32, now time.Time) *corev1.PodStatus {
	s := terminatedStatus(pod, now)
	if code == 0 {
		return s
	}
	for i := range s.ContainerStatuses {
		ended := s.ContainerStatuses[i].State.Terminated
		ended.ExitCode, ended.Reason = code, "Error"
	}
	return failed(s)
}
