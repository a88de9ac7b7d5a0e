package deploy_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/deploy"
	"github.com/stormglass/stormglass/deploy/deploytest"
)

// kustomize builds a directory below deploy/kubernetes, as `kubectl apply -k` does.
func kustomize(t *testing.T, dir string) resmap.ResMap {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(
		filesys.MakeFsOnDisk(), filepath.Join(deploytest.Root(t), "deploy", "kubernetes", filepath.FromSlash(dir)))
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// One `kubectl apply -k` creates all objects, in the namespaces in which the operator and Grafana look for them. The
// build fails if a file is missing or a name is used twice.
func TestKustomization(t *testing.T) {
	boards, err := filepath.Glob(filepath.Join(deploytest.Root(t), "dashboards", "json", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	// One of the generated files is a kustomization.
	want := map[string]int{"Service": 4, "ServiceMonitor": 5, "PrometheusRule": len(generated(t)) - 1, "ConfigMap": len(boards)}
	got := map[string]int{}
	for _, r := range kustomize(t, ".").Resources() {
		got[r.GetKind()]++
		namespace := deploy.Namespace
		if r.GetKind() == "Service" { // a Service must be in the namespace of the pods that it selects
			namespace = "kube-system"
		}
		if r.GetNamespace() != namespace {
			t.Errorf("%s %s is in namespace %q, not %s", r.GetKind(), r.GetName(), r.GetNamespace(), namespace)
		}
		if r.GetLabels()["release"] != "kube-prometheus-stack" {
			t.Errorf("%s %s: the chart's Prometheus does not select it: %v", r.GetKind(), r.GetName(), r.GetLabels())
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("kinds: %v, want %v", got, want)
	}
}

// The scrape objects set the job names that the rules use.
func TestJobs(t *testing.T) {
	want := ruleJobs(t)
	// The load generator's address is unknown in advance, so no object scrapes it.
	delete(want, "loadgen")
	if got := monitorJobs(t, "."); !maps.Equal(got, want) {
		t.Errorf("the monitors select the jobs %v, but the rules the jobs %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	if got := monitorJobs(t, "external-etcd"); !maps.Equal(got, map[string]bool{"etcd": true}) {
		t.Errorf("external-etcd selects the jobs %v", got)
	}
}

// monitorJobs returns the job names that the scrape objects of a directory set.
func monitorJobs(t *testing.T, dir string) map[string]bool {
	t.Helper()
	jobs := map[string]bool{}
	for _, r := range kustomize(t, dir).Resources() {
		m, err := r.Map()
		if err != nil {
			t.Fatal(err)
		}
		spec, _ := m["spec"].(map[string]any)
		if job, ok := spec["jobName"].(string); ok {
			jobs[job] = true
		}
		endpoints, _ := spec["endpoints"].([]any)
		for _, e := range endpoints {
			relabelings, _ := e.(map[string]any)["relabelings"].([]any)
			for _, r := range relabelings {
				if r := r.(map[string]any); r["targetLabel"] == "job" {
					jobs[r["replacement"].(string)] = true
				}
			}
		}
	}
	return jobs
}

// ruleJobs returns the job names in the rules.
func ruleJobs(t *testing.T) map[string]bool {
	t.Helper()
	loaded, err := alerts.Load()
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]bool{}
	p := parser.NewParser(parser.Options{})
	for _, g := range loaded {
		for _, r := range g.Rules {
			expr, err := p.ParseExpr(r.Expr)
			if err != nil {
				t.Fatal(err)
			}
			for _, selector := range parser.ExtractSelectors(expr) {
				for _, m := range selector {
					for _, job := range matched(t, m) {
						jobs[job] = true
					}
				}
			}
		}
	}
	return jobs
}

var plainJob = regexp.MustCompile(`^[a-z-]+$`)

// matched returns the job names that a matcher accepts. It fails the test if the matcher does not list them.
func matched(t *testing.T, m *labels.Matcher) []string {
	t.Helper()
	if m.Name != "job" {
		return nil
	}
	var all []string
	for job := range strings.SplitSeq(m.Value, "|") {
		if !plainJob.MatchString(job) || m.Type != labels.MatchEqual && m.Type != labels.MatchRegexp {
			t.Fatalf("the matcher %s does not name its jobs", m)
		}
		all = append(all, job)
	}
	return all
}
