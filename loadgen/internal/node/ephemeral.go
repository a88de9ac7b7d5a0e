package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startEphemeral starts the ephemeral containers of a pod that have not started yet. They run until the pod ends, and
// are never restarted. The caller holds k.mu.
func (k *kubelet) startEphemeral(p *pod, pod *corev1.Pod) {
	life := k.life
	at := metav1.NewTime(life.clock.Now())
	var events []containerEvent
	for i := range pod.Spec.EphemeralContainers {
		c := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if p.isEphemeral(c.Name) {
			continue
		}
		status := runningContainer(pod, &c, at)
		status.Ready, status.Started = false, nil // as a kubelet reports them
		p.ephemeral = append(p.ephemeral, status)
		events = append(events, startsOf(&c, "spec.ephemeralContainers", false)...)
	}
	if len(events) > 0 {
		k.announceEvents(life, pod, events)
		k.queue(life, func() error { return k.writeEphemeral(life, p) })
	}
}

func (p *pod) isEphemeral(container string) bool {
	return slices.ContainsFunc(p.ephemeral, func(s corev1.ContainerStatus) bool { return s.Name == container })
}

func (k *kubelet) writeEphemeral(life *life, p *pod) error {
	k.mu.Lock()
	there, status := k.pods[p.uid] == p && p.state < stopping, map[string]any{
		"observedGeneration": p.generation, "ephemeralContainerStatuses": slices.Clone(p.ephemeral),
	}
	k.mu.Unlock()
	if !there {
		return nil
	}
	body, err := statusPatch(p.uid, status)
	if err == nil {
		_, err = k.readAndPatch(life.ctx, p, body)
	}
	return err
}

// endEphemeral ends the ephemeral containers of a pod that has ended, and returns their statuses.
func (k *kubelet) endEphemeral(p *pod) []corev1.ContainerStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range p.ephemeral {
		s := &p.ephemeral[i]
		if run := s.State.Running; run != nil {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: run.StartedAt, FinishedAt: metav1.NewTime(k.plan.clock.Now()), ContainerID: s.ContainerID,
			}}
		}
	}
	return slices.Clone(p.ephemeral)
}
