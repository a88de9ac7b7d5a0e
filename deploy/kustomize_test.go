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

// kustomize builds a folder, relative to deploy/kubernetes, as kubectl apply -k does.
func kustomize(t *testing.T, dir string) resmap.ResMap {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(
		filesys.MakeFsOnDisk(), filepath.Join(deploytest.Root(t), "deploy", "kubernetes", filepath.FromSlash(dir)))
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// One kubectl apply -k brings everything, where the operator and Grafana look
// for it; building it refuses a file that is not there and a name used twice.
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
		if r.GetKind() == "Service" { // it selects pods, which are there
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

// The targets are given the jobs that the rules look for.
func TestJobs(t *testing.T) {
	want := ruleJobs(t)
	// The load generator's address is unknown; its rules stay silent.
	delete(want, "loadgen")
	if got := monitorJobs(t, "."); !maps.Equal(got, want) {
		t.Errorf("the monitors select the jobs %v, but the rules the jobs %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	if got := monitorJobs(t, "external-etcd"); !maps.Equal(got, map[string]bool{"etcd": true}) {
		t.Errorf("external-etcd selects the jobs %v", got)
	}
}

// monitorJobs is the values of the label job that the monitors of a folder set.
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

// ruleJobs is the values that the rules compare the label job with.
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

// matched is the jobs that a matcher accepts: the rules name them, one by one.
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
