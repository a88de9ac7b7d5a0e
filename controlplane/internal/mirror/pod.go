package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// The annotations of a kubelet's static and mirror pods.
const (
	configHash   = "kubernetes.io/config.hash"
	configMirror = corev1.MirrorPodAnnotationKey
	configSeen   = "kubernetes.io/config.seen"
	configSource = "kubernetes.io/config.source"
)

// requests maps kinds of component to the resource requests in the manifests of kubeadm and metrics-server.
var requests = map[string]corev1.ResourceList{
	control.KindEtcd:              {corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("100Mi")},
	control.KindAPIServer:         {corev1.ResourceCPU: resource.MustParse("250m")},
	control.KindScheduler:         {corev1.ResourceCPU: resource.MustParse("100m")},
	control.KindControllerManager: {corev1.ResourceCPU: resource.MustParse("200m")},
	control.KindMetricsServer:     {corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("200Mi")},
}

// list gets the node's pods from the API server's watch cache.
func (n *node) list(ctx context.Context, now time.Time) error {
	list, err := n.kubelet.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", n.name).String(), ResourceVersion: "0",
	})
	if err != nil {
		return err
	}
	n.listed, n.pods = now, map[string]*corev1.Pod{}
	for i := range list.Items {
		n.pods[list.Items[i].Name] = &list.Items[i]
	}
	return nil
}

// syncPods creates the mirror pod of each component and updates its status.
func (n *node) syncPods(ctx context.Context, now time.Time) error {
	client := n.kubelet.CoreV1().Pods(metav1.NamespaceSystem)
	for _, c := range n.cfg.components(n.index) {
		want := n.mirrorPod(c)
		got := n.pods[want.Name]
		if got != nil && !mirrors(got, want) {
			none := int64(0)
			err := client.Delete(ctx, got.Name, metav1.DeleteOptions{GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &got.UID}})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			got = nil
		}
		if got == nil {
			made, err := client.Create(ctx, want, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // the cache does not have the pod yet
				made, err = client.Get(ctx, want.Name, metav1.GetOptions{})
			}
			if err != nil {
				return err
			}
			got = made
		}
		status := podStatus(c, n.image(c.Kind, c.Release), got.Status, now)
		if !equality.Semantic.DeepEqual(status, got.Status) {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": got.UID}, "status": status})
			if err != nil {
				return err
			}
			if got, err = client.Patch(ctx, got.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				return err
			}
		}
		n.pods[want.Name] = got
	}
	return nil
}

// mirrors reports whether an existing pod (got) is the wanted mirror pod (want): it has the same annotation and the
// same owner, and it is not being deleted.
func mirrors(got, want *corev1.Pod) bool {
	return got.DeletionTimestamp == nil && got.Annotations[configMirror] == want.Annotations[configMirror] &&
		len(got.OwnerReferences) == 1 && got.OwnerReferences[0].UID == want.OwnerReferences[0].UID
}

func (n *node) mirrorPod(c supervisor.Snapshot) *corev1.Pod {
	pod := n.staticPod(c)
	pod.Annotations[configMirror] = pod.Annotations[configHash]
	yes := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.name, UID: n.registered.UID, Controller: &yes}}
	return pod
}

func (n *node) podName(c supervisor.Snapshot) string { return c.Kind + "-" + n.name }

// staticPod returns the static pod that kubeadm would create for a component, with the command line and the port of the
// component's process, but without probes and volumes.
func (n *node) staticPod(c supervisor.Snapshot) *corev1.Pod {
	command := append([]string{c.Kind}, c.Args...)
	image := n.image(c.Kind, c.Release)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(n.name+"\n"+image+"\n"+strings.Join(command, "\n"))))[:32]
	var ports []corev1.ContainerPort
	if p := port(c); p > 0 {
		ports = []corev1.ContainerPort{{Name: "probe-port", ContainerPort: p, HostPort: p, Protocol: corev1.ProtocolTCP}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.podName(c), Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{"component": c.Kind, "tier": "control-plane"},
			Annotations: map[string]string{
				configHash: hash, configSeen: c.Child.Started.Format(time.RFC3339Nano), configSource: "file",
			},
		},
		Spec: corev1.PodSpec{
			NodeName: n.name, HostNetwork: true, PriorityClassName: "system-node-critical",
			Tolerations:     []corev1.Toleration{{Effect: corev1.TaintEffectNoExecute, Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: c.Kind, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: command, Ports: ports,
				Resources: corev1.ResourceRequirements{Requests: requests[c.Kind]},
			}},
		},
	}
}

func (n *node) image(kind string, r control.Release) string {
	version := r.VersionOf(kind)
	switch kind {
	case control.KindEtcd:
		version += "-0" // the image's tag ends with a build number
	case control.KindMetricsServer:
		kind, version = "metrics-server/"+kind, n.cfg.MetricsServerVersion
	}
	return "registry.k8s.io/" + kind + ":" + version
}

// podStatus returns the status of a component's pod. `was` is the previous status of the pod.
func podStatus(c supervisor.Snapshot, image string, was corev1.PodStatus, now time.Time) corev1.PodStatus {
	ready := c.Ready && !process.Paused(c.Child.PID)
	container := corev1.ContainerStatus{
		Name: c.Kind, Image: image, ImageID: image, ContainerID: fmt.Sprintf("stormglass://%d", c.Child.PID),
		RestartCount: int32(c.Restarts), Ready: ready, Started: &c.Ready, State: state(c.Child),
	}
	if c.Last != nil {
		container.LastTerminationState = state(c.Last)
	}
	status := *was.DeepCopy()
	status.Phase, status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{container}
	status.HostIP, status.HostIPs = topology.Host, []corev1.HostIP{{IP: topology.Host}}
	status.PodIP, status.PodIPs = topology.Host, []corev1.PodIP{{IP: topology.Host}}
	if status.StartTime == nil {
		status.StartTime = seconds(c.Child.Started)
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: *seconds(now)}
		if !ready && (kind == corev1.PodReady || kind == corev1.ContainersReady) {
			condition.Status, condition.Reason = corev1.ConditionFalse, "ContainersNotReady"
			condition.Message = fmt.Sprintf("containers with unready status: [%s]", c.Kind)
		}
		i := slices.IndexFunc(status.Conditions, func(was corev1.PodCondition) bool { return was.Type == kind })
		switch {
		case i < 0:
			status.Conditions = append(status.Conditions, condition)
		case status.Conditions[i].Status != condition.Status:
			status.Conditions[i] = condition
		}
	}
	return status
}

// state returns the state of a container from the state of its process.
func state(child *process.Child) corev1.ContainerState {
	if !child.Ended() {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *seconds(child.Started)}}
	}
	exit := child.Exit()
	terminated := &corev1.ContainerStateTerminated{
		ExitCode: int32(exit.Code), Reason: "Completed", StartedAt: *seconds(child.Started), FinishedAt: *seconds(exit.At),
		ContainerID: fmt.Sprintf("stormglass://%d", child.PID),
	}
	if signal := unix.SignalNum(exit.Signal); signal != 0 { // as shells and container runtimes report it
		terminated.ExitCode = 128 + int32(signal)
	}
	if terminated.ExitCode != 0 {
		terminated.Reason = "Error"
	}
	return corev1.ContainerState{Terminated: terminated}
}

// seconds returns a time as the API server stores it: in whole seconds.
func seconds(t time.Time) *metav1.Time { return &metav1.Time{Time: t.Truncate(time.Second)} }
