package render_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/stormglass/stormglass/alerts/render"
)

// Kustomize builds the bundle's objects. Each has the namespace of the options, and the label "release" by which the
// operator's Prometheus selects it.
func TestKustomizeBuilds(t *testing.T) {
	b := bundle(t, render.Options{Jobs: kubePrometheusStack(), Namespace: "observability", Release: "kps"})
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(write(t, b), "kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]int{}, map[string]int{}
	for _, r := range built.Resources() {
		got[r.GetKind()]++
		if r.GetNamespace() != "observability" || r.GetLabels()["release"] != "kps" {
			t.Errorf("%s %s is in %q with the labels %v", r.GetKind(), r.GetName(), r.GetNamespace(), r.GetLabels())
		}
	}
	for name := range b.Files {
		switch {
		case strings.HasPrefix(name, "rules/"):
			want["PrometheusRule"]++
		case strings.HasPrefix(name, "dashboards/"):
			want["ConfigMap"]++
		}
	}
	if got["PrometheusRule"] != want["PrometheusRule"] || got["ConfigMap"] != want["ConfigMap"] || len(got) != 2 {
		t.Errorf("%v, want %v", got, want)
	}
}
