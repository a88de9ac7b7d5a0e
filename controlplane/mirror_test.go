package controlplane_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// controlPlanePod returns a component's pod once a condition of it holds.
func controlPlanePod(t *testing.T, kube *kubernetes.Clientset, name, what string, holds func(*corev1.Pod) bool) (pod *corev1.Pod) {
	t.Helper()
	eventually(t, time.Minute, name+" "+what, func() bool {
		var err error
		pod, err = kube.CoreV1().Pods(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && holds(pod)
	})
	return pod
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// followLog follows a component's log from its last line on.
func followLog(t *testing.T, dir, pod string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programWithin)
	cmd := exec.CommandContext(ctx, shared.Binary, "kubectl", "--dir", dir, "-n", "kube-system", "logs", "--follow", "--tail=1", pod)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Errorf("%s: nothing to follow", pod)
	}
	return lines
}

// TestControlPlanePods finds the components as on a cluster made by kubeadm.
func TestControlPlanePods(t *testing.T) {
	c := shared.Cluster()
	kube := client(t, c, "admin")
	for _, component := range c.Components {
		pod := controlPlanePod(t, kube, component.Kind+"-control-plane", "is Ready", podReady)
		container := pod.Spec.Containers[0]
		if !slices.Equal(container.Command, append([]string{component.Kind}, component.Args...)) {
			t.Errorf("%s runs %q, not %q", pod.Name, container.Command, component.Args)
		}
		if got := pod.Status.ContainerStatuses[0].State.Running.StartedAt; !got.Time.Equal(component.Started.Truncate(time.Second)) {
			t.Errorf("%s was started at %v, not at %v", pod.Name, got, component.Started)
		}
	}
	if got := ok(t, "kubectl", "--dir", c.Dir, "get", "nodes"); !strings.Contains(got, "control-plane   Ready    control-plane ") {
		t.Errorf("nodes:\n%s", got)
	}
	node, err := kube.CoreV1().Nodes().Get(t.Context(), "control-plane", metav1.GetOptions{})
	if err != nil || len(node.Spec.Taints) == 0 || node.Spec.Taints[0].ToString() != "node-role.kubernetes.io/control-plane:NoSchedule" {
		t.Errorf("node: %+v, %v", node, err)
	}
	if pods := node.Status.Allocatable.Pods().Value(); pods != 0 {
		t.Errorf("a pod that tolerates every taint would be scheduled to a node that does not run it: room for %d", pods)
	}

	log := ok(t, "kubectl", "--dir", c.Dir, "-n", "kube-system", "logs", "-l", "component=etcd", "--tail=-1")
	if data, err := os.ReadFile(c.Components[0].Log); err != nil || !strings.HasPrefix(string(data), log) || !strings.Contains(log, "became leader") {
		t.Errorf("the log of %s is not\n%s\n%v", c.Components[0].Name, log, err)
	}

	before := controlPlanePod(t, kube, "etcd-control-plane", "is Ready", podReady)
	ok(t, "kubectl", "--dir", c.Dir, "-n", "kube-system", "delete", "pod", before.Name)
	controlPlanePod(t, kube, before.Name, "is Ready again", func(p *corev1.Pod) bool { return p.UID != before.UID && podReady(p) })
}
