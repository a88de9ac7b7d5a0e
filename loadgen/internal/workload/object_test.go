package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// encoded returns an object as the API server sends it.
func encoded(t testing.TB, o runtime.Object) []byte {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		t.Fatal(err)
	}
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(kinds[0])
	var b bytes.Buffer
	if err := serializer.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// frame returns a watch event as the API server sends it.
func frame(t testing.TB, event string, o runtime.Object) []byte {
	t.Helper()
	body, err := (&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: encoded(t, o)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// fullPod returns a pod with about as many fields as a real one.
func fullPod(name string) *corev1.Pod {
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: "web-", Namespace: "ns", UID: types.UID("uid-" + name), ResourceVersion: "42",
			Generation: 3, CreationTimestamp: now,
			Labels:      map[string]string{"a": "b", DeploymentLabel: "web", "pod-template-hash": "5f"},
			Annotations: map[string]string{RevisionAnnotation: "7", "x": "y"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5f", UID: "owner",
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(string(bytes.Repeat([]byte(`{"f:metadata":{"f:labels":{}}}`), 60))),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", ServiceAccountName: "default", SchedulerName: "default-scheduler",
			NodeSelector: map[string]string{"stormglass.dev/run": "r"},
			Containers: []corev1.Container{{
				Name: "pause", Image: Image,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
				}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.0.0.2",
			ContainerStatuses: []corev1.ContainerStatus{{Name: "pause", Ready: true}},
		},
	}
	for _, c := range []corev1.PodConditionType{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue})
	}
	return pod
}

// TestDecodeReadsWhatTheAPIWrites checks the decoder's field numbers with objects from Kubernetes' own encoder.
func TestDecodeReadsWhatTheAPIWrites(t *testing.T) {
	terminating, failed, unready := fullPod("b"), fullPod("c"), fullPod("d")
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_700_000_000, 0)}
	failed.Status.Phase = corev1.PodFailed
	unready.Status.Conditions[3].Status = corev1.ConditionFalse
	replicas := int32(5)
	pod := object{
		kind: podKind, uid: "uid-a", name: "a", resourceVersion: "42", generation: 3,
		deployment: "web", revision: "7", nodeName: "node-1", ready: true,
	}
	with := func(o object, f func(*object)) object { f(&o); return o }
	for _, c := range []struct {
		name string
		kind kind
		in   runtime.Object
		want object
	}{
		{"a Ready pod", podKind, fullPod("a"), pod},
		{"a terminating pod", podKind, terminating, with(pod, func(o *object) { o.name, o.uid, o.deleting = "b", "uid-b", true })},
		{"a failed pod", podKind, failed, with(pod, func(o *object) { o.name, o.uid, o.ended = "c", "uid-c", true })},
		{"a pod that is not Ready", podKind, unready, with(pod, func(o *object) { o.name, o.uid, o.ready = "d", "uid-d", false })},
		{"a node", nodeKind, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "9"},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: "NoSchedule"}}},
			Status: corev1.NodeStatus{
				Capacity:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
				Conditions: []corev1.NodeCondition{{Type: "MemoryPressure", Status: "False"}, {Type: "Ready", Status: "True"}},
			},
		}, object{kind: nodeKind, name: "n", uid: "u", resourceVersion: "9", ready: true}},
		{"a node that its cloud-controller-manager has not initialized", nodeKind, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "9"},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: "NoSchedule"}, {Key: "k"}}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}},
		}, object{kind: nodeKind, name: "n", uid: "u", resourceVersion: "9"}},
		{"a Deployment", deploymentKind, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u", ResourceVersion: "9", Generation: 4, Labels: map[string]string{DeploymentLabel: "web"}},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: 6, UpdatedReplicas: 3, AvailableReplicas: 2, ReadyReplicas: 1},
		}, object{
			kind: deploymentKind, name: "web", uid: "u", resourceVersion: "9", generation: 4, deployment: "web",
			specReplicas: 5, observed: 4, replicas: 6, updated: 3, available: 2,
		}},
		{"a StatefulSet", statefulSetKind, &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u", ResourceVersion: "9", Generation: 4, Labels: map[string]string{DeploymentLabel: "db"}},
			Spec:       appsv1.StatefulSetSpec{Replicas: &replicas},
			Status:     appsv1.StatefulSetStatus{ObservedGeneration: 4, Replicas: 6, ReadyReplicas: 1, CurrentReplicas: 1, UpdatedReplicas: 3, AvailableReplicas: 2},
		}, object{
			kind: statefulSetKind, name: "db", uid: "u", resourceVersion: "9", generation: 4, deployment: "db",
			specReplicas: 5, observed: 4, replicas: 6, updated: 3, available: 2,
		}},
		{"a DaemonSet", daemonSetKind, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "agent", UID: "u", ResourceVersion: "9", Generation: 4, Labels: map[string]string{DeploymentLabel: "agent"}},
			Status:     appsv1.DaemonSetStatus{ObservedGeneration: 4, DesiredNumberScheduled: 9, NumberReady: 1, UpdatedNumberScheduled: 3, NumberAvailable: 2},
		}, object{
			kind: daemonSetKind, name: "agent", uid: "u", resourceVersion: "9", generation: 4, deployment: "agent",
			specReplicas: 1, observed: 4, updated: 3, available: 2,
		}},
		{"a Job that waits for its pods to end", jobKind, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "batch", UID: "u", ResourceVersion: "9", Labels: map[string]string{DeploymentLabel: "batch"}},
			Spec:       batchv1.JobSpec{Completions: &replicas},
			Status: batchv1.JobStatus{Succeeded: 5, Failed: 2, Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: "True"}, {Type: batchv1.JobFailed, Status: "False"},
			}},
		}, object{
			kind: jobKind, name: "batch", uid: "u", resourceVersion: "9", deployment: "batch", specReplicas: 5, successes: 5,
		}},
		{"a complete Job", jobKind, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "batch", UID: "u", ResourceVersion: "9"},
			Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}},
		}, object{kind: jobKind, name: "batch", uid: "u", resourceVersion: "9", complete: true}},
		{"a ReplicaSet", replicaSetKind, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "u", ResourceVersion: "9", Labels: map[string]string{DeploymentLabel: "web"}},
			Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{RevisionAnnotation: "7"}},
			}},
		}, object{
			kind: replicaSetKind, name: "web-1", uid: "u", resourceVersion: "9", deployment: "web", revision: "7", specReplicas: 5,
		}},
		{"an EndpointSlice", sliceKind, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "web-x", UID: "u", ResourceVersion: "9", Labels: map[string]string{DeploymentLabel: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "a", UID: "uid-a"}},
				{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "b", UID: "uid-b"}},
				{Addresses: []string{"10.0.0.3"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "c", UID: "uid-c"}},
				{Addresses: []string{"10.0.0.4"}},
			},
		}, object{
			kind: sliceKind, name: "web-x", uid: "u", resourceVersion: "9", deployment: "web", endpoints: []string{"uid-a", "uid-c"},
		}},
		{"a Status", statusKind, &metav1.Status{Status: "Failure", Message: "too old", Reason: "Expired", Code: 410},
			object{kind: statusKind, message: "too old", code: 410}},
	} {
		t.Run(c.name, func(t *testing.T) {
			msg, err := protobuf.Unwrap(encoded(t, c.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode(c.kind, msg)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("\n got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestDecodeListKeepsVersionAndContinue(t *testing.T) {
	list := &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "100", Continue: "more"},
		Items:    []corev1.Pod{*fullPod("a"), *fullPod("b")},
	}
	var names []string
	meta, err := protobuf.List(encoded(t, list), func(item []byte) error {
		o, err := decode(podKind, item)
		names = append(names, o.name)
		return err
	})
	if err != nil || meta.ResourceVersion != "100" || meta.Continue != "more" || len(names) != 2 || names[1] != "b" {
		t.Errorf("got %+v with %v, %v", meta, names, err)
	}
}

// A truncated event causes an error, never a panic.
func TestDecodeEventSurvivesTruncation(t *testing.T) {
	whole := frame(t, "ADDED", fullPod("a"))[4:]
	for n := range whole {
		if event, o, err := decodeEvent(podKind, whole[:n]); err == nil {
			t.Errorf("decodeEvent accepts %d of %d bytes as %s %s", n, len(whole), event, o.name)
		}
	}
}

func BenchmarkDecodePod(b *testing.B) {
	data := frame(b, "MODIFIED", fullPod("a"))[4:]
	b.Run(fmt.Sprintf("fields/%dB", len(data)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := decodeEvent(podKind, data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		s := serializer.NewSerializer(scheme.Scheme, scheme.Scheme)
		for b.Loop() {
			var e metav1.WatchEvent
			if err := e.Unmarshal(data); err != nil {
				b.Fatal(err)
			}
			if _, _, err := s.Decode(e.Object.Raw, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
