package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

const previewed = `
nodes: {count: 20, leaseRenew: 10s}
background: [{kind: requests, name: reads, verb: get, rate: 10/s, objects: 5, size: 2KiB}]
setup: [{kind: create, object: {apiVersion: v1, kind: ResourceQuota, metadata: {name: few}}}]
phases:
- {name: calm, for: 30s}
- name: storm
  until: podsReady
  within: 2m
  actions: [{kind: deploy, name: web, replicas: 40, service: true}]
  load: [{kind: requests, name: writes, verb: update, rate: 50/s, shape: {kind: ramp, to: 90/s, over: 1m}, namespaces: 3}]
`

func TestPreviewCountsWhatIsMadeAndSent(t *testing.T) {
	s := newStub(t)
	s.denies = func(what string) bool { return what == "create clusterroles" || what == "delete nodes" }
	p, err := Inspect(t.Context(), Kubeconfig{Files: s.kubeconfig(t, goodToken)}, parsed(t, previewed), PreviewOptions{AbortOn: []string{"errors=50%"}}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, x := range p.Creates {
		counts[x.Kind+" in "+x.Where] += x.Count
	}
	for what, n := range map[string]int{
		"Namespace in cluster": 3, "ServiceAccount in run": 1, "ClusterRole in cluster": 1, "Role in run": 3, "Lease in default": 1,
		"Node in cluster": 20, "Lease in kube-node-lease": 20, "CertificateSigningRequest in cluster": 20,
		"Deployment in run": 1, "Service in run": 1, "Pod in run": 40, "configmaps in run": 105, "ResourceQuota in run": 3,
	} {
		if counts[what] != n {
			t.Errorf("%d %s, want %d", counts[what], what, n)
		}
	}
	if p.PeakPerSecond != 100 || p.PeakPhase != "storm" || p.LongestSeconds != 150 || len(p.Left) != 0 {
		t.Errorf("%+v", p)
	}
	if p.Bytes.Kept != 5*2048+100*1024 || p.Bytes.SentPerSecond != 90*1024 {
		t.Errorf("%+v", p.Bytes)
	}
	totals := map[string]int64{}
	for _, r := range p.Requests {
		totals[r.Load+" "+r.Verb] = r.Total
	}
	if totals["reads get"] != 1500 || totals["writes update"] != 9600 || totals["simulated nodes update"] != 300 {
		t.Errorf("%v", totals)
	}
	if got := p.Missing(); !slices.Equal(got, []string{"create clusterroles.rbac.authorization.k8s.io", "delete nodes"}) {
		t.Errorf("missing: %v", got)
	}
	if err := p.Refused(); err == nil || !strings.Contains(err.Error(), "alice lacks permission to create clusterroles.rbac.authorization.k8s.io; delete nodes (") {
		t.Errorf("%v", err)
	}
	var text strings.Builder
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"dry run of test on cluster staging (" + s.URL + "), Kubernetes v1.37.1, as alice: nothing is made",
		"peak: 100 requests/s of all loads, in phase storm; 0 watches open at most", "ends early when: errors=50%", "left behind: nothing",
		"2 of ", " are missing:\n  create clusterroles.rbac.authorization.k8s.io\n  delete nodes\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	data, err := json.Marshal(p)
	if err != nil || strings.Contains(string(data), "null") {
		t.Errorf("%v, %s", err, data)
	}
}

// A preview only sends requests that change nothing: for versions, resources, and permissions.
func TestPreviewMakesNothing(t *testing.T) {
	s := newStub(t)
	if _, err := Inspect(t.Context(), Kubeconfig{Files: s.kubeconfig(t, goodToken)}, parsed(t, previewed), PreviewOptions{CleanupJob: true}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	for _, asked := range s.asked() {
		if !strings.HasPrefix(asked, "GET ") && !strings.HasSuffix(asked, "/selfsubjectreviews") && !strings.HasSuffix(asked, "/selfsubjectaccessreviews") {
			t.Errorf("asked %s", asked)
		}
	}
}

// Every built-in scenario can be previewed without a cluster.
func TestPreviewOfEveryScenario(t *testing.T) {
	for _, name := range scenario.Names() {
		s, err := scenario.Read(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range append(s.AllVariants(), s) {
			p := PreviewOf(one, PreviewOptions{})
			var text strings.Builder
			if err := p.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if p.Cluster != nil || len(p.Creates) == 0 || len(p.Permissions) < 20 || p.LongestSeconds <= 0 || len(p.Missing()) != 0 {
				t.Errorf("%s: %s", name, text.String())
			}
		}
	}
}

// A plan and a preview agree.
func TestPreviewAgreesWithPlan(t *testing.T) {
	for _, name := range scenario.Names() {
		s, err := scenario.Read(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, plan := PreviewOf(s, PreviewOptions{}), staging().Plan(s)
		pods := 0
		for _, x := range p.Creates {
			if x.Kind == "Pod" && x.Where == "run" && strings.HasPrefix(x.For, "workloads") {
				pods += x.Count
			}
		}
		if p.Watches != plan.Watches || pods != plan.Pods || p.PeakPerSecond < plan.Rate {
			t.Errorf("%s: preview %d watches, %d pods, %v/s; plan %+v", name, p.Watches, pods, p.PeakPerSecond, plan)
		}
	}
}
