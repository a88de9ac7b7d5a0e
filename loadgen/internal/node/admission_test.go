package node

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

func asksFor(name corev1.ResourceName, quantity string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
	}
}

func onHostPort(ip string, port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostIP: ip, HostPort: port, ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

func selecting(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func tolerating(toleration corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{toleration} }
}

func forOS(name corev1.OSName) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: name} }
}

func labelledOS(name corev1.OSName) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{corev1.LabelOSStable: string(name)} }
}

// admission is a pod and its status on the node.
type admission struct {
	change  func(*corev1.Pod)
	status  string
	message string
}

// admits binds the pods to the node sg-0 one after the other, and checks the status of each.
func (s *stub) admits(name string, tests ...admission) {
	s.t.Helper()
	for i, test := range tests {
		name := fmt.Sprintf("%s-%d", name, i)
		s.bind("sg-0", name, test.change)
		s.await(fmt.Sprintf("%s is: %s", name, test.status), func() bool { return tell(s.pods[name].Status) == test.status })
		s.locked(func() {
			if message := s.pods[name].Status.Message; message != test.message {
				s.t.Errorf("%s: message %q, want %q", name, message, test.message)
			}
		})
	}
}

// A scheduler would not bind these pods to the node. A kubelet gives the same reasons and messages.
func TestPodThatDoesNotFitIsRejected(t *testing.T) {
	s, _ := started(t, nil) // 4 CPUs, 8Gi, 10 pods
	s.update(func() {
		s.answer = func(w http.ResponseWriter, r request) bool {
			if r.method != "GET" || !strings.HasSuffix(r.path, "/nodes/sg-0") {
				return false
			}
			reply(w, 200, "v1", "Node", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sg-0", Labels: map[string]string{"disk": "ssd"}}})
			return true
		}
	})
	const lacks = "Pod was rejected: Node didn't have enough resource: "
	s.admits("pod", []admission{
		{asksFor(corev1.ResourceCPU, "20"), "Failed/OutOfcpu", lacks + "cpu, requested: 20000, used: 0, capacity: 4000"},
		{asksFor(corev1.ResourceCPU, "3"), "Running, ready, running", ""},
		{asksFor(corev1.ResourceCPU, "1500m"), "Failed/OutOfcpu", lacks + "cpu, requested: 1500, used: 3000, capacity: 4000"},
		{asksFor(corev1.ResourceMemory, "9Gi"), "Failed/OutOfmemory", lacks + "memory, requested: 9663676416, used: 0, capacity: 8589934592"},
		{onHostPort("", 80), "Running, ready, running", ""},
		{onHostPort("127.0.0.1", 80), "Failed/NodePorts", "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{onHostPort("", 81), "Running, ready, running", ""},
		{selecting(corev1.LabelHostname, "sg-0"), "Running, ready, running", ""},
		{selecting("disk", "hdd"), "Failed/NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{selecting("disk", "ssd"), "Running, ready, running", ""},        // a label that the node got later
		{asksFor("example.com/gpu", "1"), "Running, ready, running", ""}, // a resource that the Node lacks
		{forOS(corev1.Linux), "Running, ready, running", ""},
		{forOS(corev1.Windows), "Failed/PodOSNotSupported", "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS"},
		{labelledOS(corev1.Linux), "Running, ready, running", ""},
		{labelledOS(corev1.Windows), "Failed/PodOSSelectorNodeLabelDoesNotMatch", "Pod was rejected: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"},
	}...)
}

// A node rejects pods that do not tolerate the NoExecute taints with which it registered or that it got later.
func TestPodThatDoesNotTolerateATaintIsRejected(t *testing.T) {
	taint := corev1.Taint{Key: "repair", Value: "now", Effect: corev1.TaintEffectNoExecute}
	other := corev1.Taint{Key: "full", Effect: corev1.TaintEffectNoSchedule} // only for the scheduler
	s, f := started(t, func(c *Config) { c.Taints = []corev1.Taint{other, taint} })
	admitted := func(change func(*corev1.Pod)) admission { return admission{change, "Running, ready, running", ""} }
	rejected := func(change func(*corev1.Pod)) admission {
		return admission{change, "Failed/TaintToleration", "Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"}
	}
	saw := func(taints ...corev1.Taint) {
		spec, err := (&corev1.NodeSpec{Taints: taints}).Marshal()
		must(t, err)
		f.kubelets[0].sawNode(view{Object: protobuf.Object{Spec: spec}, ready: []byte("True")})
	}
	s.admits("registered", rejected(nil), rejected(tolerating(corev1.Toleration{Key: "repair", Value: "never"})),
		admitted(tolerating(corev1.Toleration{Key: "repair", Value: "now", Effect: corev1.TaintEffectNoExecute})))
	saw(other)
	s.admits("removed", admitted(nil))
	saw(other, taint)
	s.admits("added", rejected(nil), admitted(tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})))
}

// A pod's room is free once its status says that its containers have ended: the scheduler then binds the next pod.
func TestRoomOfAPodIsFreeWhenItEnds(t *testing.T) {
	l := startLiving(t, Lean)
	for _, end := range []func(name string){
		l.deletePod,
		func(string) { l.clock.Step(jobRunFor) },
	} {
		l.bind("sg-0", "old", func(p *corev1.Pod) {
			asksFor(corev1.ResourceCPU, "4")(p)
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Finalizers = []string{"example.com/wait"} // holds it
		})
		l.awaitPod("old", "Running, ready, running")
		end("old")
		l.awaitPod("old", "Succeeded, Completed(0)")
		l.bind("sg-0", "new", asksFor(corev1.ResourceCPU, "4"))
		l.awaitPod("new", "Running, ready, running")
		l.removePod("old")
		l.removePod("new")
	}
}
