package cluster

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
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
		"Deployment in run": 1, "Service in run": 1, "Pod in run": 40, "ReplicaSet in run": 1, "ConfigMap in run": 105, "ResourceQuota in run": 3,
	} {
		if counts[what] != n {
			t.Errorf("%d objects %s, want %d", counts[what], what, n)
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
		"dry run of test on cluster staging (" + s.URL + "), Kubernetes v1.37.1, as alice; nothing is created",
		"peak: 100 requests/s from all loads, in phase storm; at most 0 watches open", "ends early when: errors=50%", "left behind: nothing",
		"2 of ", " are missing:\n  create clusterroles.rbac.authorization.k8s.io\n  delete nodes\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the preview does not contain %q:\n%s", want, text.String())
		}
	}
	data, err := json.Marshal(p)
	if err != nil || strings.Contains(string(data), "null") {
		t.Errorf("%v, %s", err, data)
	}
}

// A preview only sends requests that change nothing: for the version, the resources and the permissions.
func TestPreviewMakesNothing(t *testing.T) {
	s := newStub(t)
	if _, err := Inspect(t.Context(), Kubeconfig{Files: s.kubeconfig(t, goodToken)}, parsed(t, previewed), PreviewOptions{CleanupJob: true}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	for _, asked := range s.asked() {
		if !strings.HasPrefix(asked, "GET ") && !strings.HasSuffix(asked, "/selfsubjectreviews") && !strings.HasSuffix(asked, "/selfsubjectaccessreviews") {
			t.Errorf("the preview sent %s", asked)
		}
	}
}

// TestPreviewOfEveryScenario previews every built-in scenario without a cluster. It compares the numbers with those
// from walking through the schedules and rendering the objects.
func TestPreviewOfEveryScenario(t *testing.T) {
	exponent := regexp.MustCompile(`\de[+-]\d`)
	for _, name := range scenario.Names() {
		s := builtIn(t, name)
		for _, variant := range append(s.AllVariants(), s.Scenario) {
			one := plan.Of(variant)
			p := PreviewOf(one, PreviewOptions{})
			var text strings.Builder
			if err := p.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if p.Cluster != nil || len(p.Creates) == 0 || len(p.Permissions) < 20 || p.LongestSeconds <= 0 || len(p.Missing()) != 0 || exponent.MatchString(text.String()) {
				t.Errorf("%s: %s", name, text.String())
			}
			checkLoads(t, one, p)
			for _, b := range one.Batches {
				if a, ok := strings.CutPrefix(b.Path, "objects"); ok && len(a) > 0 {
					checkBatch(t, one, b, p)
				}
			}
		}
	}
}

// checkLoads compares the requests and objects of each load of a scenario with its preview.
func checkLoads(t *testing.T, s *plan.Plan, p Preview) {
	t.Helper()
	for _, l := range s.Loads {
		var sent, created int64
		for _, r := range p.Requests {
			if r.Load == l.Name && r.Phase == l.Phase {
				sent += r.Total
				if r.Verb == "create" && !builtin.IsReview(r.Resource) {
					created += r.Total
				}
			}
		}
		before, by := 0, 0
		for _, x := range p.Creates {
			switch {
			case strings.HasPrefix(x.For, "load "+l.Name+", before"):
				before += x.Count
			case strings.HasPrefix(x.For, "load "+l.Name+", by"):
				by += x.Count
			}
		}
		if want := walked(s, l); sent != want {
			t.Errorf("%s %s: load %s sends %d requests in the preview, but %d in its schedule", s.Name, s.Variant, l.Name, sent, want)
		}
		if l.Recorded == nil && (int64(by) != created || before != len(madeBy(l.Load))*l.Objects) {
			t.Errorf("%s %s: load %s creates %d objects before it starts and %d by its requests, but sends %d create requests", s.Name, s.Variant, l.Name, before, by, created)
		}
	}
}

// walked counts the requests of a load by walking through its schedule.
func walked(s *plan.Plan, l plan.Load) (n int64) {
	length := plan.LongestOf(l.Phases...)
	switch {
	case l.Recorded != nil:
		for _, e := range l.Recorded.Entries {
			if e.At.D() < length {
				n++
			}
		}
		return n
	case l.Kind == "history":
		arrivals := math.Floor(float64(l.Rate) * length.Seconds())
		return int64(arrivals*0.5+0.5) + int64(arrivals*0.875+0.5)
	}
	pacer, err := arrival.NewShaped(l.Arrival, float64(l.Rate), l.Shape.Pace(), s.Seed)
	if err != nil {
		return -1
	}
	most := int64(math.MaxInt64)
	if l.OpensWatches() {
		most = int64(l.Count)
	} else if l.Batch().Has() {
		most = 0
		for _, tm := range l.Templates {
			most += int64(l.Iterations * tm.Replicas * (1 + strings.Count(tm.Text, "\n---\n")))
		}
	}
	for n < most && pacer.At(n) < length {
		n++
	}
	return n
}

// checkBatch renders the objects of a batch and compares their numbers with the preview.
func checkBatch(t *testing.T, s *plan.Plan, b plan.Batch, p Preview) {
	t.Helper()
	all := b.Expanded
	want, got := map[string]int{}, map[string]int{}
	for i := range all.Len() {
		o, err := all.At(i)
		if err != nil {
			t.Fatal(err)
		}
		want[o.Kind]++
	}
	for _, x := range p.Creates {
		if x.For == "of "+b.Path {
			got[x.Kind] += x.Count
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: %s creates %v, but the preview has %v", s.Name, b.Path, want, got)
	}
}

// The preview may contain names and notes from a cluster. They cannot control the terminal.
func TestPreviewTextIsClean(t *testing.T) {
	p := Preview{Scenario: "one", Cluster: &PreviewCluster{Name: "\x1b[2Jprod"}, Notes: []string{"a\u202eb"}}
	var text strings.Builder
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); strings.ContainsAny(got, "\x1b\u202e") || !strings.Contains(got, "cluster [2Jprod") || !strings.Contains(got, "note: ab\n") {
		t.Errorf("%q", got)
	}
}

// The plan and the preview of each built-in scenario have the same numbers.
func TestPreviewAgreesWithPlan(t *testing.T) {
	for _, name := range scenario.Names() {
		s := builtIn(t, name)
		p, asked := PreviewOf(s, PreviewOptions{}), planOn(s)
		pods := 0
		for _, x := range p.Creates {
			if x.Kind == "Pod" && strings.HasPrefix(x.For, "workloads") {
				pods += x.Count
			}
		}
		if name == "replay-demo" { // the plan does not count the watches in recordings
			asked.Watches = 25
		}
		if p.Watches != asked.Watches || pods != asked.ByControllers["Pod"] || pods < asked.Pods && !anyAction(s, func(a scenario.Action) bool { return a.Autoscales() }) || p.PeakPerSecond < asked.Rate {
			t.Errorf("%s: preview %d watches, %d pods, %v/s; plan %+v", name, p.Watches, pods, p.PeakPerSecond, asked)
		}
	}
}

// The preview and the plan list the node pools.
func TestPoolsAreListed(t *testing.T) {
	s := parsed(t, "nodes: {count: 5, pools: [{name: gpu, count: 2, labels: {tier: gpu}, taints: [{key: gpu, value: only, effect: NoSchedule}], zones: [a, b], resources: {example.com/gpu: 8}}]}\nphases: [{name: a, for: 5s}]\n")
	const gpu = "pool gpu, label tier=gpu, taint gpu=only:NoSchedule, zones a b, 8 example.com/gpu"
	counts := map[string]int{}
	for _, x := range PreviewOf(s, PreviewOptions{}).Creates {
		if x.Kind == "Node" {
			counts[x.For] = x.Count
		}
	}
	if want := map[string]int{"simulated nodes, kubelet": 3, "simulated nodes, kubelet, " + gpu: 2}; !maps.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
	if text := newTarget("RUN", s).Plan().String(); !strings.Contains(text, "2 of these nodes in "+gpu+"\n") {
		t.Errorf("%s", text)
	}
}
