package controlplane_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/controlplane/control"
)

// controlPlanePod waits until `holds` returns true for a component's pod, and returns the pod.
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

// followLog follows a component's log, beginning with its last line.
func followLog(t *testing.T, dir, pod string) *bufio.Scanner {
	t.Helper()
	return readKubectl(t, nil, dir, "logs", "--follow", "--tail=1", pod)
}

// readKubectl runs kubectl in the namespace kube-system until the test ends. It returns when kubectl has printed a
// line.
func readKubectl(t *testing.T, stderr io.Writer, dir string, args ...string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programWithin)
	cmd := exec.CommandContext(ctx, shared.Binary, append([]string{"kubectl", "--dir", dir, "-n", metav1.NamespaceSystem}, args...)...)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // the test killed kubectl
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Errorf("kubectl %s printed no output", strings.Join(args, " "))
	}
	return lines
}

// TestControlPlanePods checks that the API shows the components as on a cluster that kubeadm created.
func TestControlPlanePods(t *testing.T) {
	c := shared.Cluster()
	kube := client(t, c, "admin")
	for i, component := range c.Components {
		pod := controlPlanePod(t, kube, component.Kind+"-control-plane", "is Ready", podReady)
		container := pod.Spec.Containers[0]
		if !slices.Equal(container.Command, append([]string{component.Kind}, component.Args...)) {
			t.Errorf("the command of pod %s is %q, want the arguments %q", pod.Name, container.Command, component.Args)
		}
		// A component that loses its lease on a busy machine restarts. cluster.json describes its newest process.
		controlPlanePod(t, kube, pod.Name, "has run since the component's start", func(p *corev1.Pod) bool {
			running := p.Status.ContainerStatuses[0].State.Running
			now, err := control.Load(c.Dir)
			return err == nil && running != nil && running.StartedAt.Time.Equal(now.Components[i].Started.Truncate(time.Second))
		})
	}
	if got := ok(t, "kubectl", "--dir", c.Dir, "get", "nodes"); !strings.Contains(got, "control-plane   Ready    control-plane ") {
		t.Errorf("kubectl get nodes does not list a Ready control-plane node:\n%s", got)
	}
	node, err := kube.CoreV1().Nodes().Get(t.Context(), "control-plane", metav1.GetOptions{})
	if err != nil || len(node.Spec.Taints) == 0 || node.Spec.Taints[0].ToString() != "node-role.kubernetes.io/control-plane:NoSchedule" {
		t.Errorf("node = %+v, %v; want the taint NoSchedule of the control plane", node, err)
	}
	if pods := node.Status.Allocatable.Pods().Value(); pods != 0 {
		t.Errorf("the node must have room for no pod, because some pods tolerate every taint and it runs none: allocatable pods = %d", pods)
	}

	log := ok(t, "kubectl", "--dir", c.Dir, "-n", "kube-system", "logs", "-l", "component=etcd", "--tail=-1")
	if data, err := os.ReadFile(c.Components[0].Log); err != nil || !strings.HasPrefix(string(data), log) || !strings.Contains(log, "became leader") {
		t.Errorf("the log of %s differs from\n%s\n%v", c.Components[0].Name, log, err)
	}

	before := controlPlanePod(t, kube, "etcd-control-plane", "is Ready", podReady)
	ok(t, "kubectl", "--dir", c.Dir, "-n", "kube-system", "delete", "pod", before.Name)
	controlPlanePod(t, kube, before.Name, "is Ready again", func(p *corev1.Pod) bool { return p.UID != before.UID && podReady(p) })
}

// forward forwards a free port of this machine to a component's pod and returns the address.
func forward(t *testing.T, stderr io.Writer, dir, pod, port string) string {
	t.Helper()
	line := readKubectl(t, stderr, dir, "port-forward", "--address=127.0.0.1", "pod/"+pod, ":"+port).Text()
	address, ok := strings.CutPrefix(line, "Forwarding from ")
	address, _, arrow := strings.Cut(address, " -> ")
	if !ok || !arrow {
		t.Fatalf("kubectl port-forward pod/%s :%s printed %q, want an address", pod, port, line)
	}
	return address
}

// TestPortForward reads each component's metrics through its pod. It uses the port number that the component has on a
// cluster created by kubeadm, or the name of the port.
func TestPortForward(t *testing.T) {
	c := shared.Cluster()
	kube := client(t, c, "admin")
	ports := map[string]string{
		control.KindEtcd: "2379", control.KindAPIServer: "6443", control.KindScheduler: "10259", control.KindControllerManager: "probe-port",
	}
	for _, component := range c.Components {
		pod := controlPlanePod(t, kube, component.Kind+"-control-plane", "is Ready", podReady).Name
		port := ports[component.Kind]
		s := component.Scrape
		scraper := https(t, s.CAFile, control.KeyPair{CertFile: s.CertFile, KeyFile: s.KeyFile})
		code, body, err := do(t, scraper, http.MethodGet, "https://"+forward(t, os.Stderr, c.Dir, pod, port)+"/metrics", "")
		if code != http.StatusOK || !strings.Contains(body, "\nprocess_start_time_seconds ") {
			t.Errorf("metrics through pod %s, port %s: status %d, %v\n%s", pod, port, code, err, body)
		}
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if code, _, err := do(t, http.DefaultClient, http.MethodGet, "http://"+forward(t, w, c.Dir, "kube-scheduler-control-plane", "10251")+"/metrics", ""); err == nil {
		t.Errorf("port 10251 responds with status %d, want no connection", code)
	}
	const reason = "kube-scheduler-0 does not listen on port 10251 (forward port 10259)"
	if said := bufio.NewScanner(r); !said.Scan() || !strings.Contains(said.Text(), reason) {
		t.Errorf("kubectl printed %q, want %q", said.Text(), reason)
	}
}

// TestKubernetesEndpoint checks that the Service `kubernetes` leads to the API server.
func TestKubernetesEndpoint(t *testing.T) {
	c := shared.Cluster()
	wantKubernetesEndpoint(t, c)
	if got := ok(t, "kubectl", "--dir", c.Dir, "describe", "service", "kubernetes"); !strings.Contains(got, strings.TrimPrefix(c.Server, "https://")) {
		t.Error(got)
	}
}

// wantKubernetesEndpoint checks that the Service kubernetes has one endpoint, the address of the API server or of the
// load balancer.
func wantKubernetesEndpoint(t *testing.T, c control.Cluster) {
	t.Helper()
	slices, err := client(t, c, "admin").DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	if err != nil || len(slices.Items) != 1 {
		t.Fatalf("endpoint slices = %+v, %v; want one", slices, err)
	}
	e := slices.Items[0]
	if got := fmt.Sprintf("https://%s:%d", e.Endpoints[0].Addresses[0], *e.Ports[0].Port); got != c.Server || !*e.Endpoints[0].Conditions.Ready {
		t.Errorf("endpoint = %s, want the ready endpoint %s", got, c.Server)
	}
}
