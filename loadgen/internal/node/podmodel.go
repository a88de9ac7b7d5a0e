package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type containerKind uint8

const (
	initial containerKind = iota // runs to its end before the next one
	sidecar                      // an init container that runs on
	regular
)

// containerState is a container as its kubelet knows it.
type containerState struct {
	spec     *corev1.Container
	kind     containerKind
	field    string // of its Events
	pulled   bool   // for this pod
	state    corev1.ContainerState
	last     *corev1.ContainerStateTerminated // of the run before
	restarts int32
	failures int // runs that ended with a code over 0
	ready    bool
	started  bool
	backOff  backOff // of its restarts
	pulls    backOff // of its image
}

// exited returns how the last run ended, nil while the container runs or has not run.
func (c *containerState) exited() *corev1.ContainerStateTerminated {
	switch {
	case c.state.Terminated != nil:
		return c.state.Terminated
	case c.state.Waiting != nil:
		return c.last
	}
	return nil
}

// ran reports whether the container has run.
func (c *containerState) ran() bool { return c.state.Running != nil || c.exited() != nil }

// podModel holds what a kubelet derives a pod's status from.
type podModel struct {
	pod        *corev1.Pod // as last seen, with the conditions as last rendered
	containers []containerState
	evicted    string // message of an eviction; empty: none
	stopping   bool   // no container starts any more
}

func newPodModel(pod *corev1.Pod) podModel {
	m := podModel{}
	m.take(pod)
	reason := "ContainerCreating"
	if len(pod.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	eachContainer(pod, func(i int, c *corev1.Container, field string) {
		kind := regular
		switch {
		case i < len(pod.Spec.InitContainers) && isSidecar(c):
			kind = sidecar
		case i < len(pod.Spec.InitContainers):
			kind = initial
		}
		m.containers = append(m.containers, containerState{
			spec: c, kind: kind, field: field,
			state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		})
	})
	return m
}

// take makes pod the one that statuses are of. Its conditions are copied: remember changes them.
func (m *podModel) take(pod *corev1.Pod) {
	own := *pod
	own.Status.Conditions = slices.Clone(pod.Status.Conditions)
	m.pod = &own
}

// restarts reports whether a kubelet starts a container again that ended with a code.
func (m *podModel) restarts(c *containerState, code int32) bool {
	if m.stopping || m.evicted != "" {
		return false
	}
	policy := m.pod.Spec.RestartPolicy
	if c.spec.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.spec.RestartPolicy)
	}
	switch {
	case c.kind == sidecar:
		return true
	case c.kind == initial && code == 0:
		return false
	case policy == corev1.RestartPolicyNever:
		return false
	case policy == corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return true
}

// phase is what a kubelet makes of the containers (getPhase in pkg/kubelet/kubelet_pods.go).
func (m *podModel) phase() corev1.PodPhase {
	if m.evicted != "" {
		return corev1.PodFailed
	}
	running, waiting, ended, succeeded, restarting := 0, 0, 0, 0, 0
	for i := range m.containers {
		c := &m.containers[i]
		exited := c.exited()
		if c.kind == initial && exited != nil && exited.ExitCode != 0 && !m.restarts(c, exited.ExitCode) {
			return corev1.PodFailed
		}
		if c.kind != regular {
			continue
		}
		switch {
		case c.state.Running != nil:
			running++
		case exited == nil:
			waiting++
		default:
			ended++
			if exited.ExitCode == 0 {
				succeeded++
			}
			if m.restarts(c, exited.ExitCode) {
				restarting++
			}
		}
	}
	switch {
	case m.stopping && succeeded == len(m.pod.Spec.Containers):
		return corev1.PodSucceeded
	case m.stopping:
		return corev1.PodFailed
	case waiting > 0:
		return corev1.PodPending
	case running > 0 || restarting > 0:
		return corev1.PodRunning
	case succeeded == ended:
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// status is the pod's, with the kubelet's conditions. A condition whose status stays keeps its lastTransitionTime.
func (m *podModel) status(ip, host netip.Addr, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	s := &corev1.PodStatus{
		ObservedGeneration: m.pod.Generation, Phase: m.phase(), HostIP: host.String(), HostIPs: []corev1.HostIP{{IP: host.String()}},
		StartTime: m.pod.Status.StartTime,
	}
	if s.StartTime == nil {
		s.StartTime = &at
	}
	if m.pod.Spec.HostNetwork {
		ip = host
	}
	if ip.IsValid() {
		s.PodIP, s.PodIPs = ip.String(), []corev1.PodIP{{IP: ip.String()}}
	}
	var unready, uninitialized []string
	begun := false
	for i := range m.containers {
		c := &m.containers[i]
		if status := m.containerStatus(c); c.kind == regular {
			s.ContainerStatuses = append(s.ContainerStatuses, status)
			begun = begun || c.ran()
		} else {
			s.InitContainerStatuses = append(s.InitContainerStatuses, status)
			if !c.ready {
				uninitialized = append(uninitialized, c.spec.Name)
			}
		}
		if c.kind != initial && !c.ready {
			unready = append(unready, c.spec.Name)
		}
	}
	over := finished(s.Phase)
	ready := corev1.PodCondition{Status: corev1.ConditionTrue}
	switch {
	case s.Phase == corev1.PodSucceeded:
		ready = corev1.PodCondition{Status: corev1.ConditionFalse, Reason: completed}
	case s.Phase == corev1.PodFailed:
		ready = corev1.PodCondition{Status: corev1.ConditionFalse, Reason: notCompleted}
	case len(unready) > 0:
		ready = corev1.PodCondition{
			Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: fmt.Sprintf("containers with unready status: %s", unready),
		}
	}
	podReady := ready
	if ready.Status == corev1.ConditionTrue && !gatesOpen(m.pod) {
		podReady = corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady"}
	}
	initialized := corev1.PodCondition{Status: corev1.ConditionTrue}
	switch {
	case s.Phase == corev1.PodSucceeded:
		initialized.Reason = completed
	case !begun && len(uninitialized) > 0:
		initialized = corev1.PodCondition{
			Status: corev1.ConditionFalse, Reason: "ContainersNotInitialized", Message: fmt.Sprintf("containers with incomplete status: %s", uninitialized),
		}
	}
	sandbox := corev1.PodCondition{Status: corev1.ConditionTrue}
	if over {
		sandbox = corev1.PodCondition{Status: corev1.ConditionFalse, Reason: sandboxNotReady, Message: sandboxStopped}
	}
	s.Conditions = conditions(m.pod, at, map[corev1.PodConditionType]corev1.PodCondition{
		corev1.PodReadyToStartContainers: sandbox, corev1.PodInitialized: initialized, corev1.PodReady: podReady, corev1.ContainersReady: ready,
	})
	if m.evicted != "" {
		s.Reason, s.Message = evictedReason, m.evicted
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, Message: m.evicted,
			ObservedGeneration: m.pod.Generation, LastTransitionTime: at,
		})
	}
	m.remember(s.Conditions)
	return s
}

// remember keeps the conditions of a status, for the next one.
func (m *podModel) remember(now []corev1.PodCondition) {
	for _, c := range now {
		if old := condition(m.pod, c.Type); old != nil {
			*old = c
		} else {
			m.pod.Status.Conditions = append(m.pod.Status.Conditions, c)
		}
	}
}

func (m *podModel) containerStatus(c *containerState) corev1.ContainerStatus {
	started := c.started
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, RestartCount: c.restarts, Ready: c.ready, Started: &started, State: c.state,
	}
	if c.last != nil {
		s.LastTerminationState.Terminated = c.last
	}
	if c.ran() {
		s.ImageID, s.ContainerID = c.spec.Image, m.containerID(c)
	}
	return s
}

// containerID is that of a container's current or last run.
func (m *podModel) containerID(c *containerState) string {
	id := containerID(m.pod, c.spec)
	if c.restarts > 0 {
		id += "/" + strconv.Itoa(int(c.restarts))
	}
	return id
}

// fullName is a pod's in a kubelet's messages.
func (m *podModel) fullName() string {
	return fmt.Sprintf("%s_%s(%s)", m.pod.Name, m.pod.Namespace, m.pod.UID)
}
