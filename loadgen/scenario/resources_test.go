package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestResourcesMatchKubernetes keeps the table of resources equal to the discovery
// documents of the Kubernetes that go.mod names.
func TestResourcesMatchKubernetes(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "api", "discovery", name))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]builtIn{}
	add := func(name, kind, version string, verbs []string, cluster bool) {
		r := all[name]
		if r.kind == "" {
			r.kind = kind
		}
		r.versions = append(r.versions, version)
		r.verbs = append(r.verbs, verbs...)
		r.cluster = cluster
		all[name] = r
	}
	var core struct {
		Resources []struct {
			Name, Kind string
			Namespaced bool
			Verbs      []string
		}
	}
	read("api__v1.json", &core)
	for _, r := range core.Resources {
		if !strings.Contains(r.Name, "/") {
			add(r.Name, r.Kind, "v1", r.Verbs, !r.Namespaced)
		}
	}
	var groups struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version   string
				Resources []struct {
					Resource, Scope string
					ResponseKind    struct{ Kind string }
					Verbs           []string
				}
			}
		}
	}
	read("aggregated_v2.json", &groups)
	for _, g := range groups.Items {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				add(r.Resource+"."+g.Metadata.Name, r.ResponseKind.Kind, g.Metadata.Name+"/"+v.Version, r.Verbs, r.Scope == "Cluster")
			}
		}
	}
	text := "# Resources of Kubernetes: name, kind, versions, verbs, scope if Cluster. go test ./loadgen/scenario -run Resources -update\n"
	var lines []string
	for name, r := range all {
		slices.Sort(r.verbs)
		line := fmt.Sprintf("%s %s %s %s", name, r.kind, strings.Join(r.versions, ","), strings.Join(slices.Compact(r.verbs), ","))
		if r.cluster {
			line += " Cluster"
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	text += strings.Join(lines, "")
	if *update {
		if err := os.WriteFile("resources.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != resourceTable {
		t.Errorf("resources.txt differs from the resources of Kubernetes (go test ./loadgen/scenario -run Resources -update):\n%s", text)
	}
}

// A bundled control plane does not serve alpha and beta versions by default, and the scenario names the stubs that it defines.
func TestWarningsOfVersionsAndStubs(t *testing.T) {
	const text = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: x
controlPlane: {apiServer: {flags: {runtime-config: certificates.k8s.io/v1beta1=true}}}
setup:
  - kind: create
    object:
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: routes.example.com, annotations: {stormglass.dev/stub: "true"}}
      spec: {group: example.com, scope: Namespaced, names: {plural: routes, kind: Route}, versions: [{name: v1, served: true, storage: true}]}
phases:
  - name: a
    until: objectsMade
    within: 1m
    load:
      - name: l
        kind: objects
        rate: 1/s
        templates:
          - text: "{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaimTemplate, metadata: {name: a}}"
          - text: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: a}}"
          - text: "{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {name: a}}"
          - text: "{apiVersion: example.com/v1, kind: Route, metadata: {name: a}}"
`
	s, err := Parse("x.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"x.yaml:5: setup: 1 CRD is a stub (no validation, no controllers): routes.example.com (the load on them reaches only API servers and etcd)",
		"x.yaml:20: phases.a.load.l.templates: a bundled control plane does not serve ResourceClaimTemplate of resource.k8s.io/v1beta1 (write apiVersion: resource.k8s.io/v1, or set controlPlane.apiServer.flags.runtime-config: resource.k8s.io/v1beta1=true)",
		"x.yaml:20: phases.a.load.l.templates: a bundled control plane does not serve PodGroup of scheduling.k8s.io/v1beta1 (set controlPlane.apiServer.flags.runtime-config: scheduling.k8s.io/v1beta1=true)",
	}
	if got := append(s.Warnings(), s.Unserved()...); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
