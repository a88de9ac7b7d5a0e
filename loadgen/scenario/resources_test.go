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
	add := func(name, kind, version string, verbs []string) {
		r := all[name]
		if r.kind == "" {
			r.kind = kind
		}
		r.versions = append(r.versions, version)
		r.verbs = append(r.verbs, verbs...)
		all[name] = r
	}
	var core struct {
		Resources []struct {
			Name, Kind string
			Verbs      []string
		}
	}
	read("api__v1.json", &core)
	for _, r := range core.Resources {
		if !strings.Contains(r.Name, "/") {
			add(r.Name, r.Kind, "v1", r.Verbs)
		}
	}
	var groups struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version   string
				Resources []struct {
					Resource     string
					ResponseKind struct{ Kind string }
					Verbs        []string
				}
			}
		}
	}
	read("aggregated_v2.json", &groups)
	for _, g := range groups.Items {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				add(r.Resource+"."+g.Metadata.Name, r.ResponseKind.Kind, g.Metadata.Name+"/"+v.Version, r.Verbs)
			}
		}
	}
	text := "# Resources of Kubernetes: name, kind, versions, verbs. go test ./loadgen/scenario -run Resources -update\n"
	var lines []string
	for name, r := range all {
		slices.Sort(r.verbs)
		lines = append(lines, fmt.Sprintf("%s %s %s %s\n", name, r.kind, strings.Join(r.versions, ","), strings.Join(slices.Compact(r.verbs), ",")))
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
		t.Errorf("resources.txt is not what Kubernetes has (go test ./loadgen/scenario -run Resources -update):\n%s", text)
	}
}
