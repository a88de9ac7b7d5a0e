package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// stopDecoded stops a pod that is being deleted. spec is the decoded pod. The caller holds k.mu.
func (k *kubelet) stopDecoded(p *pod, spec *corev1.Pod) {
	if p.lifecycle != nil {
		p.lifecycle.terminate(spec)
		return
	}
	if p.state == running {
		k.ledger.podsRunning.Add(-1)
	}
	p.state, p.room = stopping, nil
	life := k.life
	if p.counted {
		k.announceEvents(life, spec, killingEvents(spec))
	}
	if k.plan.everyRequest() {
		k.write(life, func() { k.writeStopping(life, p, spec.Generation) })
	}
	if finished(spec.Status.Phase) {
		k.write(life, func() { k.remove(life, p) })
		return
	}
	k.write(life, func() {
		k.mu.Lock()
		started := p.counted || hasStarted(spec)
		k.mu.Unlock()
		status := terminatedStatus(spec, life.clock.Now())
		if !started {
			status = creatingStatus(spec, k.hostIP, life.clock.Now())
		}
		k.terminate(life, p, spec, status)
	})
}

// writeStopping reports that the kubelet has seen a pod's deletion. It does nothing if the kubelet has never reported a
// status of the pod. It does not retry a failed write, because the next report includes the change.
func (k *kubelet) writeStopping(life *life, p *pod, generation int64) {
	k.mu.Lock()
	reported := p.version > 0 || p.counted
	k.mu.Unlock()
	if !reported || !k.in(p, stopping) {
		return
	}
	body, err := generationPatch(p.uid, generation)
	if err == nil {
		_, _ = k.readAndPatch(life.ctx, p, body) // errors are counted
	}
}

// terminate reports that a pod's containers have stopped, and then removes the pod. If the end of a container is
// unknown, the pod's volumes are unmounted before terminate reports the container as terminated, as in a kubelet.
func (k *kubelet) terminate(life *life, p *pod, spec *corev1.Pod, status *corev1.PodStatus) {
	last := abandoned(spec, status)
	if !k.plan.everyRequest() {
		status = last
	}
	k.persist(life, func() error {
		if !k.in(p, stopping) {
			return nil
		}
		if _, err := k.patchPodStatus(life.ctx, p, status); err != nil {
			return err
		}
		if status == last {
			k.unmount(life, p, spec, func() { k.remove(life, p) })
		} else {
			k.unmount(life, p, spec, func() { k.abandon(life, p, last) })
		}
		return nil
	})
}

// abandon reports a pod's final status and deletes the pod, without a GET between the two requests.
func (k *kubelet) abandon(life *life, p *pod, last *corev1.PodStatus) {
	k.persist(life, func() error {
		if !k.in(p, stopping) {
			return nil
		}
		if _, err := k.patchPodStatus(life.ctx, p, last); err != nil {
			return err
		}
		return k.deletePod(life, p)
	})
}

// hasStarted reports whether a container of a pod has run, according to the pod's status.
func hasStarted(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning ||
		slices.ContainsFunc(pod.Status.InitContainerStatuses, hasRun) || slices.ContainsFunc(pod.Status.ContainerStatuses, hasRun)
}

func hasRun(c corev1.ContainerStatus) bool {
	return c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
}

// unknownEnd returns the terminated state of a container whose end the kubelet has not seen.
func unknownEnd() corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: killed, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
	}}
}

// abandoned returns the final status of a pod whose containers have stopped (TerminatePod in pkg/kubelet/status). pod
// is the pod at the time when it began to stop, and s is its status so far. The phase becomes Failed unless the pod has
// ended by itself. Containers without a known end get an unknownEnd. If nothing changes, abandoned returns s.
func abandoned(pod *corev1.Pod, s *corev1.PodStatus) *corev1.PodStatus {
	lacksEnd := func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil }
	if finished(s.Phase) && !slices.ContainsFunc(s.ContainerStatuses, lacksEnd) && !slices.ContainsFunc(s.InitContainerStatuses, lacksEnd) {
		return s
	}
	last := *s
	last.ContainerStatuses, last.InitContainerStatuses = slices.Clone(s.ContainerStatuses), slices.Clone(s.InitContainerStatuses)
	changed := false
	end := func(all []corev1.ContainerStatus) {
		for i := range all {
			if lacksEnd(all[i]) {
				all[i].State, changed = unknownEnd(), true
			}
		}
	}
	if wasInitialized(pod, s) {
		end(last.ContainerStatuses)
	}
	// End only the init containers up to the last one that has run, and at least the first one.
	ran := 1
	for i, c := range last.InitContainerStatuses {
		if hasRun(c) {
			ran = i + 1
		}
	}
	end(last.InitContainerStatuses[:min(ran, len(last.InitContainerStatuses))])
	if !finished(last.Phase) {
		last.Phase, changed = corev1.PodFailed, true
	}
	if !changed {
		return s
	}
	return &last
}

// wasInitialized reports whether a pod was initialized (hasPodInitialized in pkg/kubelet/status): its last init
// container had succeeded when the pod began to stop, or a regular container has run.
func wasInitialized(pod *corev1.Pod, s *corev1.PodStatus) bool {
	inits := pod.Spec.InitContainers
	if len(inits) == 0 {
		return true
	}
	if slices.ContainsFunc(pod.Status.ContainerStatuses, hasRun) || slices.ContainsFunc(s.ContainerStatuses, hasRun) {
		return true
	}
	name := inits[len(inits)-1].Name
	i := slices.IndexFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
	if i < 0 {
		return false
	}
	c := pod.Status.InitContainerStatuses[i]
	if isSidecar(&inits[len(inits)-1]) {
		return c.State.Running != nil && c.Started != nil && *c.Started
	}
	return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
}
