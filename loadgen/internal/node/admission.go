package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// room holds the resources of a node that one pod uses: CPU, memory, ephemeral storage, host ports, and 1 unit of the
// resource `pods`.
type room struct {
	pods, cpu, memory, storage int64                         // cpu in millicores; memory and storage in bytes
	others                     map[corev1.ResourceName]int64 // amounts of extended resources and huge pages; may be nil
	ports                      []corev1.ContainerPort        // host ports only
}

func roomOf(pod *corev1.Pod) *room {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	r := &room{pods: 1, cpu: requests.Cpu().MilliValue(), memory: requests.Memory().Value(), storage: requests.StorageEphemeral().Value()}
	for name, q := range requests {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
			continue
		}
		if r.others == nil {
			r.others = map[corev1.ResourceName]int64{}
		}
		r.others[name] = q.Value()
	}
	eachContainer(pod, func(i int, c *corev1.Container, _ string) {
		for _, p := range c.Ports {
			if p.HostPort > 0 && (i >= len(pod.Spec.InitContainers) || isSidecar(c)) {
				r.ports = append(r.ports, p)
			}
		}
	})
	return r
}

// conflicts reports whether two pods need the same host port.
func (r *room) conflicts(other *room) bool {
	return slices.ContainsFunc(r.ports, func(a corev1.ContainerPort) bool {
		return slices.ContainsFunc(other.ports, func(b corev1.ContainerPort) bool {
			return a.HostPort == b.HostPort && a.Protocol == b.Protocol && (anyAddress(a.HostIP) || anyAddress(b.HostIP) || a.HostIP == b.HostIP)
		})
	})
}

func anyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" }

// fits reserves a pod's resources on the node. If the pod does not fit, fits rejects it and returns false. A pod with a
// status.startTime always fits, because the node admitted it before. The caller holds k.mu.
func (k *kubelet) fits(p *pod, pod *corev1.Pod) bool {
	asks := roomOf(pod)
	if pod.Status.StartTime == nil {
		if reason, message := k.misfit(pod, asks); reason != "" {
			k.refuse(p, pod, reason, message)
			return false
		}
	}
	p.room = asks
	return true
}

// misfit returns the reason and message with which a kubelet rejects a pod that does not fit on the node
// (pkg/kubelet/lifecycle/predicate.go). The reason is empty if the pod fits. On a full node, a real kubelet evicts pods
// to admit a critical pod; misfit admits the critical pod without evictions.
func (k *kubelet) misfit(pod *corev1.Pod, asks *room) (reason, message string) {
	os, labelled := pod.Labels[corev1.LabelOSStable]
	switch {
	case labelled && os != string(corev1.Linux):
		return "PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
	case pod.Spec.OS != nil && pod.Spec.OS.Name != corev1.Linux:
		return "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
	}
	var used room
	others, conflict := map[corev1.ResourceName]int64{}, false
	for _, p := range k.pods {
		if p.room == nil || p.listing != k.listing { // the current list has not delivered the pod yet, so the pod may be gone
			continue
		}
		used.pods++
		used.cpu += p.room.cpu
		used.memory += p.room.memory
		used.storage += p.room.storage
		for name := range asks.others {
			others[name] += p.room.others[name]
		}
		conflict = conflict || asks.conflicts(p.room)
	}
	type use struct {
		name                 corev1.ResourceName
		asks, used, capacity int64
	}
	has := k.plan.poolOf(k.index).room
	all := []use{
		{corev1.ResourcePods, asks.pods, used.pods, has.Pods().Value()},
		{corev1.ResourceCPU, asks.cpu, used.cpu, has.Cpu().MilliValue()},
		{corev1.ResourceMemory, asks.memory, used.memory, has.Memory().Value()},
		{corev1.ResourceEphemeralStorage, asks.storage, used.storage, ephemeralStorage},
	}
	for _, name := range slices.Sorted(maps.Keys(asks.others)) {
		if q, known := has[name]; known { // a kubelet ignores resources that its node does not have
			all = append(all, use{name, asks.others[name], others[name], q.Value()})
		}
	}
	for _, r := range all {
		if r.asks > 0 && r.asks > r.capacity-r.used && !critical(pod) {
			return "OutOf" + string(r.name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", r.name, r.asks, r.used, r.capacity)
		}
	}
	if conflict {
		return "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
	}
	noExecute := func(t *corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }
	if _, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, k.taints, pod.Spec.Tolerations, noExecute, false); untolerated {
		return "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
	}
	return "", ""
}

// selects reports whether a pod's node selector and required node affinity match the node's labels, and rejects the pod
// if they do not. It uses the labels that the kubelet last read from the Node, or the labels of the registration if the
// kubelet has never read the Node. Before a rejection, it reads the Node again, as a real kubelet does.
func (k *kubelet) selects(life *life, p *pod, pod *corev1.Pod) bool {
	if a := pod.Spec.Affinity; len(pod.Spec.NodeSelector) == 0 && (a == nil || a.NodeAffinity == nil) {
		return true
	}
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	matches := func(labels map[string]string) bool {
		ok, _ := required.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.name, Labels: labels}}) // an invalid affinity matches no node
		return ok
	}
	k.mu.Lock()
	labels := k.labels
	k.mu.Unlock()
	if labels == nil {
		labels = k.nodeLabels()
	}
	if matches(labels) {
		return true
	}
	node, failures := &corev1.Node{}, 0
	if !k.until(life, p, func() time.Duration {
		if k.get(life.ctx, "nodes", nodes+"/"+k.name, node) == nil {
			return 0
		}
		failures++
		return life.backoff(podBackoff, podBackoffMax, failures)
	}) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.labels = node.Labels
	if matches(node.Labels) {
		return true
	}
	if k.pods[p.uid] == p && p.state == starting {
		k.refuse(p, pod, "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
	}
	return false
}

// refuse rejects a pod: the pod's phase becomes Failed. The caller holds k.mu.
func (k *kubelet) refuse(p *pod, pod *corev1.Pod, reason, message string) {
	life := k.life
	p.state, p.room, p.lifecycle = ended, nil, nil
	k.dereference(p)
	k.announceWarning(life, pod, reason, message)
	at := metav1.NewTime(life.clock.Now())
	status := &corev1.PodStatus{
		ObservedGeneration: pod.Generation, Phase: corev1.PodFailed, StartTime: &at, Reason: reason, Message: "Pod was rejected: " + message,
	}
	k.queue(life, func() error {
		if !k.in(p, ended) {
			return nil
		}
		_, err := k.patchPodStatus(life.ctx, p, status)
		return err
	})
}
