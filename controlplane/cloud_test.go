package controlplane_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

// TestCloud checks that the cloud controllers initialize a node, create its route, give a Service its address even
// after an outage of the cloud, and delete the node when its instance no longer exists.
func TestCloud(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := "cloudControllerManager: {replicas: 2, cloud: {delay: 10ms, loadBalancers: 1, loadBalancerTime: 1s}}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var c control.Cluster
	if err := json.Unmarshal([]byte(ok(t, "up", "--detach", "--dir", dir, "--config", config, "--output", "json")), &c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run(t, "down", "--dir", dir) })
	supervisor, err := control.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	instance := control.Instance{Name: "n", Zone: "zone-1", Type: "small", Address: "10.128.0.1"}
	if err := supervisor.ChangeInstances(t.Context(), control.Instances{Launch: []control.Instance{instance}}); err != nil {
		t.Fatal(err)
	}
	admin := client(t, c, "admin").CoreV1()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: corev1.NodeSpec{
			ProviderID: instance.ProviderID(),
			Taints:     []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	if _, err := admin.Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the node is initialized", func() bool {
		got, err := admin.Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, taint := range got.Spec.Taints {
			if taint.Key == node.Spec.Taints[0].Key {
				return false
			}
		}
		return got.Labels[corev1.LabelTopologyZone] == "zone-1" && got.Labels[corev1.LabelInstanceTypeStable] == "small" &&
			len(got.Status.Addresses) > 0 && got.Status.Addresses[0].Address == "10.128.0.1" && got.Spec.PodCIDR != ""
	})
	eventually(t, time.Minute, "it has a route", func() bool {
		got, err := admin.Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, condition := range got.Status.Conditions {
			if condition.Type == corev1.NodeNetworkUnavailable {
				return condition.Status == corev1.ConditionFalse
			}
		}
		return false
	})

	balancer := func(name string) {
		t.Helper()
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if _, err := admin.Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	address := func(name string) string {
		got, err := admin.Services("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || len(got.Status.LoadBalancer.Ingress) == 0 {
			return ""
		}
		return got.Status.LoadBalancer.Ingress[0].IP
	}
	balancer("first")
	eventually(t, time.Minute, "the Service has an address", func() bool { return address("first") == "198.18.0.1" })
	// The cloud's objects survive the kill of its process, and the quota still holds.
	ok(t, "fault", "kill", "--dir", dir, "--component", "cloud-api")
	balancer("second")
	ok(t, "fault", "clear", "--dir", dir, "1")
	eventually(t, time.Minute, "the second is over the quota", func() bool {
		events, err := admin.Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=second,reason=SyncLoadBalancerFailed"})
		if err != nil {
			return false
		}
		for _, e := range events.Items {
			if address("second") == "" && strings.Contains(e.Message, "quota exceeded: 1 load balancers already exist") {
				return true
			}
		}
		return false
	})
	if err := supervisor.ChangeInstances(t.Context(), control.Instances{Terminate: []string{"n"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, "the node is deleted", func() bool {
		_, err := admin.Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if _, err := admin.Nodes().Get(t.Context(), "control-plane", metav1.GetOptions{}); err != nil {
		t.Errorf("get of the components' node, which is not an instance: %v", err)
	}
}
