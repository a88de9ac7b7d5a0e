package builtin

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite resources.txt")

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
	all := map[string]Resource{}
	add := func(name, kind, version string, verbs []string, cluster bool) {
		r := all[name]
		if r.Kind == "" {
			r.Kind = kind
		}
		r.Versions = append(r.Versions, version)
		r.Verbs = append(r.Verbs, verbs...)
		r.Cluster = cluster
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
	text := "# Resources of Kubernetes: name, kind, versions, verbs, scope if Cluster. go test ./loadgen/internal/builtin -run Resources -update\n"
	var lines []string
	for name, r := range all {
		slices.Sort(r.Verbs)
		line := fmt.Sprintf("%s %s %s %s", name, r.Kind, strings.Join(r.Versions, ","), strings.Join(slices.Compact(r.Verbs), ","))
		if r.Cluster {
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
	if text != table {
		t.Errorf("resources.txt differs from the resources of Kubernetes (go test ./loadgen/internal/builtin -run Resources -update):\n%s", text)
	}
}
