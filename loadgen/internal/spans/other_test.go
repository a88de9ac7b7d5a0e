package spans

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

const agentOf = "kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/unknown/system:serviceaccount:kube-system:"

// writeOf returns the spans of a request that writes an object: the API server's span, and below it the storage span with
// the object's key. n numbers the trace. Times are milliseconds.
func writeOf(n int, name, agent, key string, start, end int64) []Span {
	method, _, _ := strings.Cut(name, " ")
	root := Span{
		Trace: traceID(n), ID: id(1), Process: "kube-apiserver-0", Name: name, Start: start * ms, End: end * ms,
		Attributes: []Attribute{{attributeMethod, method}, {attributeAgent, agent}, {attributeTarget, "/x"}, {attributeStatus, "201"}},
	}
	stored := Span{Trace: root.Trace, ID: id(2), Parent: root.ID, Process: "kube-apiserver-0", Name: "GuaranteedUpdate etcd3", Start: start * ms, End: end * ms, Attributes: []Attribute{{"key", key}}}
	return []Span{stored, root}
}

const (
	namespaced  = "/api/v1/namespaces/{:namespace}/"
	inApps      = "/apis/apps/v1/namespaces/{:namespace}/"
	inDiscovery = "/apis/discovery.k8s.io/v1/namespaces/{:namespace}/"
)

// rollout returns the writes of a Deployment with one pod.
func rollout() (all [][]Span) {
	for i, w := range []struct {
		name, agent, key string
		at               int64
	}{
		{"PATCH " + inApps + "deployments/{:name}", "loadgen/v1", "/deployments/ns/web", 100},
		{"POST " + inApps + "replicasets", agentOf + "deployment-controller", "/replicasets/ns/web-5f", 110},
		{"PUT " + inApps + "deployments/{:name}/status", agentOf + "deployment-controller", "/deployments/ns/web", 115},
		{"POST " + namespaced + "pods", agentOf + "replicaset-controller", "/pods/ns/web-5f-abcde", 120},
		{"POST " + namespaced + "pods/{:name}/binding", "kube-scheduler/v1.37.1 (linux/amd64)", "/pods/ns/web-5f-abcde", 130},
		{"PUT " + inDiscovery + "endpointslices/{:name}", agentOf + "endpointslice-controller", "/endpointslices/ns/web-x1", 140},
		{"PATCH " + namespaced + "pods/{:name}/status", "kubelet/v1.37.1", "/pods/ns/web-5f-abcde", 150},
		{"PUT " + inDiscovery + "endpointslices/{:name}", agentOf + "endpointslice-controller", "/endpointslices/ns/web-x1", 160},
		{"PUT " + inDiscovery + "endpointslices/{:name}", agentOf + "endpointslice-controller", "/endpointslices/ns/web-x1", 170},
		{"DELETE " + namespaced + "pods/{:name}", "kubectl/v1.37.1", "/pods/ns/web-5f-abcde", 900},
		{"PATCH " + namespaced + "pods/{:name}/status", "kubelet/v1.37.1", "/pods/ns/web-5f-abcde", 910},
	} {
		all = append(all, writeOf(10+i, w.name, w.agent, w.key, w.at, w.at+5))
	}
	return all
}

func text(lives []result.PodLife) string {
	var b strings.Builder
	for _, l := range lives {
		fmt.Fprintf(&b, "%s %.3f\n", l.Pod, l.Seconds)
		for _, w := range l.Writes {
			fmt.Fprintf(&b, "%.3f %s: %s\n", w.Start, w.Client, w.What)
		}
	}
	return b.String()
}

func TestLifeOfAPod(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	k.BeginPhase("rollout", 0)
	for _, w := range rollout() {
		for _, s := range w {
			k.Span(s, 0)
		}
	}
	k.Flush()
	const want = `ns/web-5f-abcde 0.065
0.000 loadgen: PATCH deployments
0.010 deployment-controller: POST replicasets
0.020 replicaset-controller: POST pods
0.030 kube-scheduler: POST pods/binding
0.050 kubelet: PATCH pods/status
0.060 endpointslice-controller: PUT endpointslices
`
	if got := text(k.lives.rows()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	kept := 0
	for _, x := range k.Kept() {
		for _, why := range x.Why {
			if why == Life {
				kept++
			}
		}
	}
	if kept != 6 {
		t.Errorf("%d traces are kept for the pod's life, want 6", kept)
	}
}

// The Keeper keeps the traces of a few pods, even if a run creates many. It follows a pod from its first write, or never.
func TestLivesAreASample(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	n := 0
	for _, name := range []string{"POST " + namespaced + "pods", "POST " + namespaced + "pods/{:name}/binding"} {
		for pod := range 3000 {
			n++
			key := fmt.Sprintf("/pods/ns/w%d-5f-p%d", pod%100, pod)
			for _, s := range writeOf(n, name, "x/v1", key, int64(n), int64(n)+1) {
				s.Trace[5] = byte(n >> 16)
				k.Span(s, int64(n))
			}
		}
	}
	k.Flush()
	rows := k.lives.rows()
	if len(rows) != maxWorkloads*maxPods {
		t.Fatalf("%d lives", len(rows))
	}
	for _, l := range rows {
		if len(l.Writes) != 2 {
			t.Errorf("%s has %d writes, want 2", l.Pod, len(l.Writes))
		}
	}
	if len(k.traces) > 2*len(rows)+4 {
		t.Errorf("%d traces are in memory for %d lives", len(k.traces), len(rows))
	}
}

// The API server records a privileged client's request as a child of the span "authentication", which ends first.
func TestRequestOfAPrivilegedClient(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	k.BeginPhase("p", 0)
	spans := writeOf(1, "PATCH "+inApps+"deployments/{:name}", "kubectl/v1", "/deployments/ns/web", 10, 20)
	spans[1].Parent = id(9)
	k.Span(Span{Trace: traceID(1), ID: id(9), Process: "kube-apiserver-0", Name: "authentication", Start: 10 * ms, End: 11 * ms}, 0)
	for _, s := range spans {
		k.Span(s, 0)
	}
	k.Flush()
	all := k.Kept()
	if len(all) != 1 || all[0].Client != "kubectl" || all[0].Resource != "deployments" || all[0].Phase != "p" || all[0].Status != 201 {
		t.Fatalf("kept %+v", all)
	}
	tree := all[0].Tree()
	if !tree.Complete() || tree.Roots[0].Name != spans[1].Name || len(tree.Roots[0].Children) != 2 {
		t.Errorf("the tree is not the request with two children: %+v", tree.Roots[0])
	}
}

func TestSpansWithoutRequestOfAnotherClient(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	watch := writeOf(1, "GET "+namespaced+"pods", "kubelet/v1", "/pods", 1, 2)[1]
	watch.Attributes[2].Value = "/api/v1/namespaces/ns/pods?watch=true"
	k.Span(watch, 0)
	k.Span(Span{Trace: traceID(2), ID: id(1), Name: "authentication", Start: 1, End: 2}, 0)
	k.Span(Span{Trace: traceID(3), ID: id(1), Name: "HTTP GET", Client: true, Start: 1, End: 2, Attributes: []Attribute{{attributeMethod, "GET"}}}, 0)
	k.Flush()
	if c := k.Counts(); len(k.Kept()) != 0 || c.Unmatched != 3 || c.Requests != 0 {
		t.Errorf("kept %d, counts %+v", len(k.Kept()), c)
	}
}

func TestResourceAndClientOf(t *testing.T) {
	for path, want := range map[string]string{
		"api/v1/namespaces":                                 "namespaces",
		"api/v1/namespaces/{:namespace}/pods":               "pods",
		"api/v1/namespaces/{:namespace}/pods/{:name}":       "pods",
		"api/v1/namespaces/{:namespace}/pods/{:name}/log":   "pods/log",
		"api/v1/nodes/{:name}/status":                       "nodes/status",
		"apis/apps/v1/namespaces/{:namespace}/replicasets":  "replicasets",
		"api/v1/namespaces/{:namespace}/namespaces/{:name}": "namespaces",
		"apis": "apis",
		"":     "",
	} {
		if got := resourceOf(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	for agent, want := range map[string]string{
		agentOf + "job-controller":               "job-controller",
		"kube-scheduler/v1.37.1 (linux/amd64) x": "kube-scheduler",
		"":                                       "unknown client",
		"curl":                                   "curl",
	} {
		if got := clientOf(agent); got != want {
			t.Errorf("%s: got %q, want %q", agent, got, want)
		}
	}
}
