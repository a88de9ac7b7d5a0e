package node

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider/api"
)

// kubeletVersion returns the version of the simulated kubelet, with a suffix that marks it as simulated.
func (p *plan) kubeletVersion() string { return p.Release.Kubernetes + "-stormglass" }

// userAgent returns the User-Agent header of simulated nodes, which distinguishes them from real kubelets in audit logs
// and metrics.
func (p *plan) userAgent() string { return "stormglass-node/" + p.kubeletVersion() }

// ephemeralStorage is the capacity of each node, in bytes.
const ephemeralStorage = 100 << 30

// nodeLabels returns the labels with which the node registers.
func (k *kubelet) nodeLabels() map[string]string {
	p, of := k.plan, k.plan.poolOf(k.index)
	labels := map[string]string{}
	if of.Name != "" {
		labels[corev1.LabelInstanceTypeStable] = of.Name
	}
	maps.Copy(labels, of.Labels)
	for key := range of.AdminLabels() {
		delete(labels, key)
	}
	maps.Copy(labels, p.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname:      k.name,
		corev1.LabelOSStable:      "linux",
		corev1.LabelArchStable:    runtime.GOARCH,
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": runtime.GOARCH,
		corev1.LabelTopologyZone:  p.zone(k.index),
	})
	if p.Cloud != nil { // cloud-controller-manager sets them
		delete(labels, corev1.LabelTopologyZone)
		delete(labels, corev1.LabelInstanceTypeStable)
	}
	return labels
}

// newNode returns the Node object that the kubelet registers. Its condition Ready is False.
func (k *kubelet) newNode(now time.Time) *corev1.Node {
	p, of, name := k.plan, k.plan.poolOf(k.index), k.name
	spec := corev1.NodeSpec{Taints: of.taints}
	addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: k.hostIP.String()}, {Type: corev1.NodeHostName, Address: name}}
	if p.Cloud != nil {
		// cloud-controller-manager sets the address. Until then a taint keeps pods off the node.
		spec.ProviderID = k.instance().ProviderID()
		spec.Taints = append(slices.Clone(spec.Taints), corev1.Taint{Key: cloudprovider.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule})
		addresses = addresses[1:]
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: k.nodeLabels(),
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: spec,
		Status: corev1.NodeStatus{
			Capacity: of.room, Allocatable: of.room,
			Conditions:      nodeConditions(now, notReady("simulated kubelet is starting")),
			Addresses:       addresses,
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: k.port}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: name, SystemUUID: name, BootID: name,
				KernelVersion: "simulated", OSImage: "Stormglass simulated node", ContainerRuntimeVersion: "stormglass://simulated",
				KubeletVersion: p.kubeletVersion(), OperatingSystem: "linux", Architecture: runtime.GOARCH,
			},
		},
	}
	for _, image := range of.Images {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{image}, SizeBytes: imageSize})
	}
	addImages(n, int(of.ObjectSize))
	return n
}

// imageSize is the size of each image of a node, in bytes.
const imageSize = 100 << 20

// addImages adds images to the status of n until n has the given size in bytes, as exactly as whole images allow. As on
// real nodes, each image has a digest and a tag.
func addImages(n *corev1.Node, size int) {
	have := n.Size()
	for i := 0; ; i++ {
		name := fmt.Sprintf("registry.example.com/stormglass/image-%04d", i)
		image := corev1.ContainerImage{Names: []string{fmt.Sprintf("%s@sha256:%x", name, sha256.Sum256([]byte(name))), name + ":v1.0.0"}, SizeBytes: imageSize}
		grows := image.Size() + 3 // a field's tag, and a length of two bytes
		if have += grows; have > size+grows/2 {
			return
		}
		n.Status.Images = append(n.Status.Images, image)
	}
}

func (p *plan) zone(i int) string {
	if zones := p.poolOf(i).Zones; len(zones) > 0 {
		return zones[p.places[i].number%len(zones)]
	}
	return "zone-" + strconv.Itoa(i%p.Spec.Zones)
}

// readiness holds the status, reason and message of a node's condition Ready.
type readiness struct {
	status          corev1.ConditionStatus
	reason, message string
}

func isReadyNow() readiness {
	return readiness{corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"}
}

func notReady(message string) readiness {
	return readiness{corev1.ConditionFalse, "KubeletNotReady", message}
}

// nodeConditions returns the node conditions that a kubelet reports, in a kubelet's order, with Ready last.
func nodeConditions(now time.Time, r readiness) []corev1.NodeCondition {
	at := metav1.NewTime(now)
	out := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: r.status, Reason: r.reason, Message: r.message},
	}
	for i := range out {
		out[i].LastHeartbeatTime, out[i].LastTransitionTime = at, at
	}
	return out
}

// readyPatch returns a patch that sets all conditions of the node's status. r is the new condition Ready.
func (k *kubelet) readyPatch(now time.Time, r readiness) ([]byte, error) {
	return nodeStatusPatch(k.conditionsNow(now, r))
}

// heartbeatPatch returns a patch of the node's status that updates only the lastHeartbeatTime of each condition.
func heartbeatPatch(now time.Time) ([]byte, error) {
	type beat struct {
		Type corev1.NodeConditionType `json:"type"`
		At   metav1.Time              `json:"lastHeartbeatTime"`
	}
	var beats []beat
	for _, c := range nodeConditions(now, isReadyNow()) {
		beats = append(beats, beat{c.Type, c.LastHeartbeatTime})
	}
	return nodeStatusPatch(beats)
}

func nodeStatusPatch(conditions any) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return nil, fmt.Errorf("encode a node's status: %w", err)
	}
	return body, nil
}

func newCSINode(owner metav1.OwnerReference) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{}},
	}
}

func (k *kubelet) patchStatus(life *life, body []byte) error {
	_, err := k.link.do(life.ctx, call{
		verb: "patch", resource: "nodes/status", path: nodes + "/" + k.name + "/status", body: body, urgent: true,
	})
	if err == nil {
		k.ledger.statusWrites.Add(1)
	}
	return err
}

// reportStatus reports the unchanged status of the node, now and then once per interval Spec.StatusReport.
func (k *kubelet) reportStatus(life *life) {
	life.after(k.plan.Spec.StatusReport.D(), func() { k.late(life, func() { k.reportStatus(life) }) })
	if body, err := heartbeatPatch(life.clock.Now()); err == nil {
		_ = k.patchStatus(life, body) // errors are counted; the next report follows anyway
	}
}

// sawNode processes the Node's taints and its condition Ready from a watch event. If another client, such as the node
// lifecycle controller, has changed the condition, the kubelet sets it to True again at its next status update.
func (k *kubelet) sawNode(v view) {
	var spec corev1.NodeSpec
	err := spec.Unmarshal(v.Spec)
	ready := string(v.ready) == "True"
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.taints = spec.Taints
	}
	if k.life == nil || k.life.over() || !k.settled || k.state != up {
		return
	}
	k.setReady(ready)
	if !ready && !k.mending {
		k.mending = true
		life := k.life
		life.after(time.Duration(life.float()*float64(statusUpdate)), func() { k.late(life, func() { k.mend(life) }) })
	}
}

func (k *kubelet) mend(life *life) {
	body, err := k.readyPatch(life.clock.Now(), isReadyNow())
	if err == nil {
		err = k.patchStatus(life, body)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if life.over() || k.state != up {
		return
	}
	if err != nil {
		life.after(statusUpdate, func() { k.mend(life) })
		return
	}
	k.mending = false
	k.setReady(true)
}

// setReady records whether the node is Ready. The caller holds mu.
func (k *kubelet) setReady(ready bool) {
	if k.ready == ready {
		return
	}
	k.ready = ready
	if ready {
		k.ledger.ready.Add(1)
	} else {
		k.ledger.ready.Add(-1)
	}
}
