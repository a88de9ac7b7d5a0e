package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// statusPatch returns the body of a patch of a pod's status. status may contain only some of the fields. The body
// contains the UID, so the patch fails with a conflict if a new pod has the same name.
func statusPatch(uid types.UID, status any) ([]byte, error) {
	type metadata struct {
		UID types.UID `json:"uid"`
	}
	body, err := json.Marshal(struct {
		Metadata metadata `json:"metadata"`
		Status   any      `json:"status"`
	}{metadata{uid}, status})
	if err != nil {
		return nil, fmt.Errorf("encode a pod's status: %w", err)
	}
	return body, nil
}

// wholeStatusPatch returns a statusPatch of a complete status. If a condition in status has no reason or no message,
// the patch also removes the old one.
func wholeStatusPatch(uid types.UID, status *corev1.PodStatus) ([]byte, error) {
	type condition struct {
		Type               corev1.PodConditionType `json:"type"`
		Status             corev1.ConditionStatus  `json:"status"`
		ObservedGeneration int64                   `json:"observedGeneration,omitempty"`
		LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
		Reason             *string                 `json:"reason"`
		Message            *string                 `json:"message"`
	}
	orNull := func(s *string) *string {
		if *s == "" {
			return nil
		}
		return s
	}
	whole := struct {
		*corev1.PodStatus
		Conditions []condition `json:"conditions,omitempty"`
	}{PodStatus: status}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		whole.Conditions = append(whole.Conditions, condition{
			c.Type, c.Status, c.ObservedGeneration, c.LastTransitionTime, orNull(&c.Reason), orNull(&c.Message),
		})
	}
	return statusPatch(uid, whole)
}

// sandboxPatch returns a statusPatch that reports that a pod's sandbox is ready.
func sandboxPatch(uid types.UID, now time.Time) ([]byte, error) {
	return statusPatch(uid, map[string]any{"conditions": []map[string]any{{
		"type": corev1.PodReadyToStartContainers, "status": corev1.ConditionTrue, "lastTransitionTime": metav1.NewTime(now), "message": nil, "reason": nil,
	}}})
}

// generationPatch returns a statusPatch that reports the observed generation of a pod.
func generationPatch(uid types.UID, generation int64) ([]byte, error) {
	var conditions []map[string]any
	for _, t := range kubeletConditions {
		conditions = append(conditions, map[string]any{"type": t, "observedGeneration": generation})
	}
	return statusPatch(uid, map[string]any{"observedGeneration": generation, "conditions": conditions})
}

// These are the reason and the messages of a pod's sandbox that does not exist yet or has stopped.
const (
	sandboxNotReady = "PodSandboxNotReady"
	noSandbox       = "no pod sandbox exists"
	sandboxStopped  = "pod sandbox is not ready"
)

// creatingStatus returns the status of a pod whose containers wait for volumes, the sandbox or images.
func creatingStatus(pod *corev1.Pod, host netip.Addr, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	s := &corev1.PodStatus{
		ObservedGeneration: pod.Generation, Phase: corev1.PodPending, StartTime: cmp.Or(pod.Status.StartTime, &at),
		HostIP: host.String(), HostIPs: []corev1.HostIP{{IP: host.String()}},
	}
	reason, initialized := "ContainerCreating", corev1.PodCondition{Status: corev1.ConditionTrue}
	if len(pod.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
		initialized = corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "ContainersNotInitialized"}
	}
	setContainers(s, pod, func(c *corev1.Container, _ bool) corev1.ContainerStatus { return waitingContainer(c, reason) })
	const notReady = "ContainersNotReady"
	s.Conditions = conditions(pod, at, map[corev1.PodConditionType]corev1.PodCondition{
		corev1.PodReadyToStartContainers: {Status: corev1.ConditionFalse, Reason: sandboxNotReady, Message: noSandbox},
		corev1.PodInitialized:            initialized,
		corev1.PodReady:                  {Status: corev1.ConditionFalse, Reason: notReady},
		corev1.ContainersReady:           {Status: corev1.ConditionFalse, Reason: notReady},
	})
	return s
}

// unconfiguredStatus returns the status of a pod that has a sandbox, but whose containers cannot all be created. absent
// holds a message for each container that cannot be created, by container name.
func unconfiguredStatus(pod *corev1.Pod, host netip.Addr, now time.Time, absent map[string]string) *corev1.PodStatus {
	s := creatingStatus(pod, host, now)
	setConditions(s, corev1.ConditionTrue, "", corev1.PodReadyToStartContainers)
	for _, containers := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range containers {
			if message := absent[containers[i].Name]; message != "" {
				containers[i].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: message}
			}
		}
	}
	return s
}

// runningStatus returns the status of a pod whose containers run and whose init containers are done.
func runningStatus(pod *corev1.Pod, ip, host netip.Addr, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	s := &corev1.PodStatus{
		ObservedGeneration: pod.Generation,
		Phase:              corev1.PodRunning,
		HostIP:             host.String(), HostIPs: []corev1.HostIP{{IP: host.String()}},
		StartTime: cmp.Or(pod.Status.StartTime, &at),
	}
	if pod.Spec.HostNetwork {
		ip = host
	}
	s.PodIP, s.PodIPs = ip.String(), []corev1.PodIP{{IP: ip.String()}}
	setContainers(s, pod, func(c *corev1.Container, initial bool) corev1.ContainerStatus {
		if !initial || isSidecar(c) {
			return runningContainer(pod, c, at)
		}
		status := terminatedContainer(pod, c, at, at)
		status.Ready = true
		return status
	})
	ready, reason := corev1.ConditionTrue, ""
	if !gatesOpen(pod) {
		ready, reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
	}
	s.Conditions = conditions(pod, at, map[corev1.PodConditionType]corev1.PodCondition{
		corev1.PodReadyToStartContainers: {Status: corev1.ConditionTrue},
		corev1.PodInitialized:            {Status: corev1.ConditionTrue},
		corev1.PodReady:                  {Status: ready, Reason: reason},
		corev1.ContainersReady:           {Status: corev1.ConditionTrue},
	})
	return s
}

// startSteps returns the statuses that a kubelet reports from the start of a pod's sandbox until the pod is Ready, in
// order: first each init container running and then ended, then the other containers before their probes succeed.
func startSteps(pod *corev1.Pod) (steps []step) {
	for i := range pod.Spec.InitContainers {
		steps = append(steps, func(ip, host netip.Addr, now time.Time) *corev1.PodStatus {
			return initializingStatus(pod, ip, host, i, true, now)
		})
		if !isSidecar(&pod.Spec.InitContainers[i]) {
			steps = append(steps, func(ip, host netip.Addr, now time.Time) *corev1.PodStatus {
				return initializingStatus(pod, ip, host, i+1, false, now)
			})
		}
	}
	probed := func(of func(*corev1.Container) *corev1.Probe, started bool) {
		if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return of(&c) != nil }) {
			steps = append(steps, func(ip, host netip.Addr, now time.Time) *corev1.PodStatus {
				return unprobedStatus(pod, ip, host, started, now)
			})
		}
	}
	probed(func(c *corev1.Container) *corev1.Probe { return c.StartupProbe }, false)
	probed(func(c *corev1.Container) *corev1.Probe { return c.ReadinessProbe }, true)
	return steps
}

// initializingStatus returns the status of a pod that has not finished its init containers. done is the number of init
// containers that have finished. If running is true, the next init container runs.
func initializingStatus(pod *corev1.Pod, ip, host netip.Addr, done int, running bool, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	s := creatingStatus(pod, host, now)
	if !pod.Spec.HostNetwork {
		s.PodIP, s.PodIPs = ip.String(), []corev1.PodIP{{IP: ip.String()}}
	}
	for i := range s.InitContainerStatuses {
		c := &pod.Spec.InitContainers[i]
		switch {
		case i < done && !isSidecar(c):
			s.InitContainerStatuses[i] = terminatedContainer(pod, c, at, at)
			s.InitContainerStatuses[i].Ready = true
		case i < done || i == done && running:
			s.InitContainerStatuses[i] = runningContainer(pod, c, at)
			s.InitContainerStatuses[i].Ready = isSidecar(c)
		}
	}
	setConditions(s, corev1.ConditionTrue, "", corev1.PodReadyToStartContainers)
	last := len(pod.Spec.InitContainers) - 1
	if done > last || done == last && running && isSidecar(&pod.Spec.InitContainers[last]) {
		setConditions(s, corev1.ConditionTrue, "", corev1.PodInitialized)
	}
	return s
}

// unprobedStatus returns the status of a pod whose containers run but wait for their startup and readiness probes. If
// started is true, the startup probes have succeeded.
func unprobedStatus(pod *corev1.Pod, ip, host netip.Addr, started bool, now time.Time) *corev1.PodStatus {
	s := runningStatus(pod, ip, host, now)
	for i := range s.ContainerStatuses {
		c := &pod.Spec.Containers[i]
		isStarted := started || c.StartupProbe == nil
		s.ContainerStatuses[i].Started = &isStarted
		s.ContainerStatuses[i].Ready = isStarted && c.ReadinessProbe == nil
	}
	setConditions(s, corev1.ConditionFalse, "ContainersNotReady", corev1.PodReady, corev1.ContainersReady)
	return s
}

// setConditions sets the status and reason of the conditions of the given types, and removes their messages.
func setConditions(s *corev1.PodStatus, status corev1.ConditionStatus, reason string, types ...corev1.PodConditionType) {
	for i := range s.Conditions {
		if c := &s.Conditions[i]; slices.Contains(types, c.Type) {
			c.Status, c.Reason, c.Message = status, reason, ""
		}
	}
}

// completed and notCompleted are reasons of the condition Ready if all containers of the pod have ended.
const (
	completed    = "PodCompleted"
	notCompleted = "PodFailed"
)

// failed changes the phase in the status of a terminated pod to Failed. It returns s.
func failed(s *corev1.PodStatus) *corev1.PodStatus {
	s.Phase = corev1.PodFailed
	for i := range s.Conditions {
		if s.Conditions[i].Reason == completed {
			s.Conditions[i].Reason = notCompleted
		}
	}
	return s
}

// terminatedStatus returns the status of a deleted pod whose containers have stopped with exit code 0.
func terminatedStatus(pod *corev1.Pod, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	s := &corev1.PodStatus{ObservedGeneration: pod.Generation, Phase: corev1.PodSucceeded, StartTime: cmp.Or(pod.Status.StartTime, &at)}
	setContainers(s, pod, func(c *corev1.Container, _ bool) corev1.ContainerStatus {
		return terminatedContainer(pod, c, *s.StartTime, at)
	})
	s.Conditions = conditions(pod, at, map[corev1.PodConditionType]corev1.PodCondition{
		corev1.PodReadyToStartContainers: {Status: corev1.ConditionFalse, Reason: sandboxNotReady, Message: sandboxStopped},
		corev1.PodInitialized:            {Status: corev1.ConditionTrue, Reason: completed},
		corev1.PodReady:                  {Status: corev1.ConditionFalse, Reason: completed},
		corev1.ContainersReady:           {Status: corev1.ConditionFalse, Reason: completed},
	})
	return s
}

// kubeletConditions lists the conditions that a kubelet sets, in the order in which it reports them.
var kubeletConditions = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
}

// conditions returns the conditions in `want`, in a kubelet's order. A condition whose status is unchanged keeps its
// transition time. If the pod has no condition PodScheduled, conditions adds it.
func conditions(pod *corev1.Pod, at metav1.Time, want map[corev1.PodConditionType]corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, t := range kubeletConditions {
		c := want[t]
		c.Type, c.ObservedGeneration, c.LastTransitionTime = t, pod.Generation, at
		if old := condition(pod, t); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		out = append(out, c)
	}
	if condition(pod, corev1.PodScheduled) == nil {
		out = append(out, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation, LastTransitionTime: at,
		})
	}
	return out
}

// shutdownStatus returns the status of a pod whose node shuts down (pkg/kubelet/nodeshutdown).
func shutdownStatus(pod *corev1.Pod, now time.Time) *corev1.PodStatus {
	const reason, message = "Terminated", "Pod was terminated in response to imminent node shutdown."
	s := failed(terminatedStatus(pod, now))
	s.Reason, s.Message = reason, message
	s.Conditions = append(s.Conditions, disruption(pod, message, metav1.NewTime(now)))
	return s
}

// disruption returns the condition DisruptionTarget of a pod that its kubelet terminates.
func disruption(pod *corev1.Pod, message string, at metav1.Time) corev1.PodCondition {
	return corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, Message: message,
		ObservedGeneration: pod.Generation, LastTransitionTime: at,
	}
}

// rejectedStatus returns the status of a pod that its node rejects because the node is shutting down.
func rejectedStatus(pod *corev1.Pod, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	return &corev1.PodStatus{
		ObservedGeneration: pod.Generation, Phase: corev1.PodFailed, StartTime: &at,
		Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down.",
	}
}

// setContainers adds the statuses of all containers of pod to s. It calls status for each container; initial is true
// for init containers.
func setContainers(s *corev1.PodStatus, pod *corev1.Pod, status func(c *corev1.Container, initial bool) corev1.ContainerStatus) {
	for i := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, status(&pod.Spec.InitContainers[i], true))
	}
	for i := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, status(&pod.Spec.Containers[i], false))
	}
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func waitingContainer(c *corev1.Container, reason string) corev1.ContainerStatus {
	started := false
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, Started: &started,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
	}
}

func runningContainer(pod *corev1.Pod, c *corev1.Container, at metav1.Time) corev1.ContainerStatus {
	started := true
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: containerID(pod, c),
		Ready: true, Started: &started,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
	}
}

func terminatedContainer(pod *corev1.Pod, c *corev1.Container, from, to metav1.Time) corev1.ContainerStatus {
	started := false
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: containerID(pod, c), Started: &started,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: from, FinishedAt: to, ContainerID: containerID(pod, c),
		}},
	}
}

func containerID(pod *corev1.Pod, c *corev1.Container) string {
	return "stormglass://" + string(pod.UID) + "/" + c.Name
}

func condition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	c := condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// gatesOpen reports whether the conditions of all readiness gates of a pod are True.
func gatesOpen(pod *corev1.Pod) bool {
	for _, g := range pod.Spec.ReadinessGates {
		if c := condition(pod, g.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			return false
		}
	}
	return true
}

func finished(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}
