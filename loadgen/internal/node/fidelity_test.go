package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// verbs of the stub's requests other than watches.
var verbs = map[string]string{"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}

// requestsSince counts the requests after the first n by verb and resource, as in an audit log: "patch pods/status". It
// omits watches and renewals of the Lease.
func (s *stub) requestsSince(n int) map[string]int {
	counted := map[string]int{}
	for _, r := range s.requests[n:] {
		if strings.Contains(r.query, "watch=true") || r.method == "PUT" {
			continue
		}
		parts := strings.Split(strings.Trim(r.path, "/"), "/")
		parts = parts[slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(p, "v1") })+1:]
		if parts[0] == "namespaces" {
			parts = parts[2:]
		}
		verb, resource := verbs[r.method], parts[0]
		if len(parts) > 2 {
			resource += "/" + parts[2]
		}
		if verb == "delete" && len(parts) == 1 {
			verb = "deletecollection"
		}
		counted[verb+" "+resource]++
	}
	return counted
}

func list(counted map[string]int) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(counted)) {
		all = append(all, fmt.Sprintf("%d %s", counted[key], key))
	}
	return strings.Join(all, ", ")
}

func (s *stub) awaitRequests(of string, n int, want string) {
	s.t.Helper()
	got := ""
	defer func() {
		if got != want {
			s.t.Logf("%s: requests: %s", of, got)
		}
	}()
	s.await(of+": "+want, func() bool {
		got = list(s.requestsSince(n))
		return got == want
	})
}

// TestRequestsOfAKubelet compares with the requests of a kubelet 1.37.1 in a calibration (loadgen/lab/records/calibration.md).
func TestRequestsOfAKubelet(t *testing.T) {
	s, f := started(t, func(c *Config) { c.Spec.Fidelity, c.Spec.Events = Kubelet, false })
	s.awaitRequests("registration", 0, "1 create csinodes, 6 create events, 1 create leases, 1 create nodes, 1 deletecollection resourceslices, "+
		"2 get csinodes, 2 get leases, 6 get nodes, 6 patch events, 2 patch nodes/status")
	s.locked(func() {
		for _, e := range s.events {
			if e.Labels["stormglass.example/run"] != "r1" {
				t.Errorf("no cleanup finds the Event %s of the Node, with labels %v", e.Reason, e.Labels)
			}
		}
	})
	always := corev1.ContainerRestartPolicyAlways
	probe := &corev1.Probe{}
	exits := func(code string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Annotations = map[string]string{scenario.ExitAfterAnnotation: "1ms", scenario.ExitCodeAnnotation: code}
		}
	}
	for _, c := range []struct {
		name       string
		change     func(*corev1.Pod)
		start, end string
	}{
		{
			"one container", nil,
			"3 create events, 1 create serviceaccounts/token, 3 get pods, 3 patch pods/status",
			"1 create events, 1 delete pods, 3 get pods, 2 patch pods/status",
		},
		{
			"three containers", func(p *corev1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b"}, corev1.Container{Name: "d"})
			},
			"9 create events, 1 create serviceaccounts/token, 3 get pods, 3 patch pods/status",
			"3 create events, 1 delete pods, 3 get pods, 2 patch pods/status",
		},
		{
			"two init containers and a sidecar", func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "i"}, {Name: "j"}, {Name: "sidecar", RestartPolicy: &always}}
			},
			"12 create events, 1 create serviceaccounts/token, 8 get pods, 8 patch pods/status",
			"2 create events, 1 delete pods, 3 get pods, 2 patch pods/status",
		},
		{
			"probes", func(p *corev1.Pod) {
				p.Spec.Containers[0].StartupProbe, p.Spec.Containers[0].ReadinessProbe = probe, probe
			},
			"3 create events, 1 create serviceaccounts/token, 5 get pods, 5 patch pods/status",
			"1 create events, 1 delete pods, 3 get pods, 2 patch pods/status",
		},
		{ // the fifth whose volumes are unmounted
			"read again", nil,
			"3 create events, 1 create serviceaccounts/token, 3 get pods, 3 patch pods/status",
			"1 create events, 1 delete pods, 4 get pods, 2 patch pods/status",
		},
		{
			"completes", exits("0"),
			"3 create events, 1 create serviceaccounts/token, 6 get pods, 5 patch pods/status", "",
		},
		{
			"fails", exits("1"),
			"3 create events, 1 create serviceaccounts/token, 6 get pods, 5 patch pods/status", "",
		},
	} {
		before := 0
		s.locked(func() { before = len(s.requests) })
		s.bind("sg-0", "web", func(p *corev1.Pod) {
			withToken(p)
			if c.change != nil {
				c.change(p)
			}
		})
		s.awaitRequests(c.name, before, c.start)
		s.locked(func() { before = len(s.requests) })
		if c.end != "" {
			eventually(t, c.name+": it runs", func() bool { return f.Live().PodsRunning == 1 })
			s.deletePod("web")
			s.awaitRequests(c.name, before, c.end)
			s.await(c.name+": it is gone", func() bool { return s.pods["web"] == nil })
			continue
		}
		var status corev1.PodStatus
		s.locked(func() { status = s.pods["web"].Status })
		code := fmt.Sprint(status.ContainerStatuses[0].State.Terminated.ExitCode)
		if want := map[corev1.PodPhase]string{corev1.PodSucceeded: "0", corev1.PodFailed: "1"}[status.Phase]; code != want {
			t.Errorf("%s: phase %s, exit code %s", c.name, status.Phase, code)
		}
		s.await(c.name+": no ConfigMap is watched for it", func() bool { return len(s.open("configmaps")) == 0 })
		s.deletePod("web") // the server removes it immediately
		s.removePod("web")
		eventually(t, c.name+": it is forgotten", func() bool {
			k := f.kubelets[0]
			k.mu.Lock()
			defer k.mu.Unlock()
			return len(k.pods) == 0
		})
		s.locked(func() {
			if got := list(s.requestsSince(before)); got != "" {
				t.Errorf("%s: after its end: %s", c.name, got)
			}
		})
	}
	if live := f.Live().PodsRunning; live != 0 {
		t.Errorf("%d pods run", live)
	}
}
