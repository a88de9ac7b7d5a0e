package node

import (
	"cmp"
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
	initial containerKind = iota // an init container that ends before the next one starts
	sidecar                      // an init container that keeps running
	regular
)

// containerState is a kubelet's state of one container.
type containerState struct {
	spec     *corev1.Container
	kind     containerKind
	field    string                           // fieldPath of the container's Events, without the container's name
	pulled   bool                             // whether the container's image was pulled for this pod
	state    corev1.ContainerState            // Waiting if it has not run
	last     *corev1.ContainerStateTerminated // end of the container's previous run
	restarts int32
	failures int // number of runs that ended with a non-zero exit code
	ready    bool
	started  bool
	backOff  backOff // back-off of the container's restarts
	pulls    backOff // back-off of the container's image pulls
	// failing says why the last attempt to start the container failed (pkg/kubelet/reason_cache.go). The kubelet
	// reports this at its next sync of the pod. shown is the reason that the last status gave, or empty.
	failing  *corev1.ContainerStateWaiting
	shown    string
	attempts int // number of failed attempts to restart the container since its last start
}

func (c *containerState) ran() bool { return c.state.Waiting == nil }

// podModel holds the state of a pod with a PodLife. Its method status computes the pod's status from this state.
type podModel struct {
	pod        *corev1.Pod // the pod as last seen, with the conditions of the last computed status
	containers []containerState
	evicted    string // message of the eviction; empty if the pod was not evicted
	deleted    bool   // whether the kubelet has seen the pod's deletion, so no more containers start
	stopped    bool   // whether the pod's containers were stopped
	noSandbox  bool   // whether the pod's sandbox was stopped
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

// take replaces the model's pod by a newer version. It copies the pod's conditions, because remember changes them.
func (m *podModel) take(pod *corev1.Pod) {
	own := *pod
	own.Status.Conditions = slices.Clone(pod.Status.Conditions)
	m.pod = &own
}

// restarts reports whether the kubelet restarts a container that ended with exit code `code`. It does so if the restart
// policy permits it and the pod is not stopping.
func (m *podModel) restarts(c *containerState, code int32) bool {
	return !m.deleted && !m.stopped && m.evicted == "" && m.restartable(c, code)
}

// restartable reports whether the restart policy permits a restart of a container that ended with exit code `code`. It
// ignores whether the pod is stopping.
func (m *podModel) restartable(c *containerState, code int32) bool {
	policy := m.policy(c)
	switch {
	case c.kind == sidecar:
		return true
	case c.kind == initial && code == 0:
		return false
	}
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
}

func (m *podModel) policy(c *containerState) corev1.RestartPolicy {
	switch {
	case c.spec.RestartPolicy != nil:
		return corev1.RestartPolicy(*c.spec.RestartPolicy)
	case m.pod.Spec.RestartPolicy == "":
		return corev1.RestartPolicyAlways
	}
	return m.pod.Spec.RestartPolicy
}

// over reports whether all containers except sidecars have ended and will not run again. It is also true after an init
// container has failed permanently.
func (m *podModel) over() bool {
	for i := range m.containers {
		c := &m.containers[i]
		end := c.state.Terminated
		switch {
		case c.kind == sidecar:
		case end == nil || m.restarts(c, end.ExitCode):
			return false
		case c.kind == initial && end.ExitCode != 0:
			return true
		}
	}
	return true
}

// phase derives the pod's phase from its containers, as a kubelet does (getPhase in pkg/kubelet/kubelet_pods.go).
func (m *podModel) phase() corev1.PodPhase {
	running, waiting, ended, succeeded, restarting := 0, 0, 0, 0, 0
	for i := range m.containers {
		c := &m.containers[i]
		end := c.state.Terminated
		switch {
		case c.kind == initial && end == nil:
			waiting++
		case c.kind == initial && end.ExitCode != 0 && !m.restartable(c, end.ExitCode):
			return corev1.PodFailed
		case c.kind == initial || c.kind == sidecar && end != nil:
		case c.state.Running != nil:
			running++
		case end == nil:
			waiting++
		default:
			ended++
			if end.ExitCode == 0 {
				succeeded++
			}
			if m.restartable(c, end.ExitCode) {
				restarting++
			}
		}
	}
	switch {
	case m.evicted != "" && m.stopped && (waiting > 0 || succeeded < ended):
		return corev1.PodFailed
	case waiting > 0:
		return corev1.PodPending
	case running > 0 || restarting > 0 && !m.stopped:
		return corev1.PodRunning
	case succeeded == ended:
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// status returns the pod's status, with the kubelet's conditions. A condition with an unchanged status keeps its
// lastTransitionTime.
func (m *podModel) status(ip, host netip.Addr, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	s := &corev1.PodStatus{
		ObservedGeneration: m.pod.Generation, Phase: m.phase(), HostIP: host.String(), HostIPs: []corev1.HostIP{{IP: host.String()}},
		StartTime: cmp.Or(m.pod.Status.StartTime, &at),
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
	if m.noSandbox {
		sandbox = corev1.PodCondition{Status: corev1.ConditionFalse, Reason: sandboxNotReady, Message: sandboxStopped}
	}
	s.Conditions = conditions(m.pod, at, map[corev1.PodConditionType]corev1.PodCondition{
		corev1.PodReadyToStartContainers: sandbox, corev1.PodInitialized: initialized, corev1.PodReady: podReady, corev1.ContainersReady: ready,
	})
	if m.evicted != "" && m.stopped {
		if s.Phase == corev1.PodFailed {
			s.Reason, s.Message = evictedReason, m.evicted
		}
		s.Conditions = append(s.Conditions, disruption(m.pod, m.evicted, at))
	}
	m.remember(s.Conditions)
	return s
}

// remember stores the conditions of a computed status, so that the next status keeps their transition times.
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
	last := c.last
	c.shown = ""
	if m.shows(c) {
		c.shown, s.State = c.failing.Reason, corev1.ContainerState{Waiting: c.failing}
		last = cmp.Or(c.state.Terminated, last)
	}
	if last != nil {
		s.LastTerminationState.Terminated = last
	}
	if c.ran() {
		s.ImageID, s.ContainerID = c.spec.Image, m.containerID(c)
	}
	return s
}

// shows reports whether the status must say why a container does not start.
func (m *podModel) shows(c *containerState) bool {
	return c.failing != nil && c.state.Running == nil && !m.deleted
}

// containerID returns the id of a container's current or last run.
func (m *podModel) containerID(c *containerState) string {
	id := containerID(m.pod, c.spec)
	if c.restarts > 0 {
		id += "/" + strconv.Itoa(int(c.restarts))
	}
	return id
}

// fullName returns the pod's name in the format of a kubelet's messages.
func (m *podModel) fullName() string {
	return fmt.Sprintf("%s_%s(%s)", m.pod.Name, m.pod.Namespace, m.pod.UID)
}
