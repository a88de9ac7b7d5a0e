// Package deploy makes the manifests of deploy/kubernetes that have a source elsewhere in the
// repository: a PrometheusRule from each rule file, a ConfigMap from each dashboard. The rest
// is written by hand: compose/ for a plane on this machine, github-actions/ for a pull
// request, and the scrape objects of kubernetes/ for a Prometheus operator.
//
// The manifests are checked in, so that kubectl needs only a checkout; "go run
// ./deploy/generate" writes them, and a test keeps them equal to their sources.
package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Namespace is the namespace of the manifests' objects for the operator and Grafana. A user's
// kustomization can change it.
const Namespace = "monitoring"

// DashboardLabel is the label by which Grafana's sidecar finds a ConfigMap, as its chart sets
// it; its value is "1". FolderAnnotation names the folder, for a sidecar that is configured to
// read it.
const (
	DashboardLabel   = "grafana_dashboard"
	FolderAnnotation = "grafana_folder"
)

// The folders that hold generated files only, below deploy/kubernetes.
const (
	RulesDir      = "rules"
	DashboardsDir = "dashboards"
)

// maxConfigMap is the API server's limit of a ConfigMap's data, in bytes.
const maxConfigMap = 1 << 20

// Manifests returns the generated files by their paths below deploy/kubernetes, made from
// alerts/*.yaml and dashboards/json/*.json below root, the repository.
//
// It fails if a source is missing, is not a YAML mapping, is not a JSON object with a "uid"
// that is its file's name, or is too large for a ConfigMap.
func Manifests(root fs.FS) (map[string][]byte, error) {
	rules, err := sources(root, "alerts/*.yaml")
	if err != nil {
		return nil, err
	}
	dashboards, err := sources(root, "dashboards/json/*.json")
	if err != nil {
		return nil, err
	}
	return objects("go run ./deploy/generate", rules, dashboards)
}

// Objects is Manifests of other rule files and dashboards, by their names ("etcd.yaml"), which
// a command made.
func Objects(command string, rules, dashboards map[string]string) (map[string][]byte, error) {
	return objects(command, named("rules", rules), named("dashboards", dashboards))
}

func objects(command string, rules, dashboards []source) (map[string][]byte, error) {
	files := map[string][]byte{}
	var names []string
	for _, s := range rules {
		if !strings.Contains("\n"+s.text, "\ngroups:\n") {
			return nil, fmt.Errorf("%s: no line is \"groups:\"", s.file)
		}
		name := s.name + ".yaml"
		names = append(names, name)
		files[path.Join(RulesDir, name)] = prometheusRule(command, s)
	}
	files[path.Join(RulesDir, kustomizationFile)] = kustomization(command, "alerts", names)

	names = nil
	for _, s := range dashboards {
		if err := checkDashboard(s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.file, err)
		}
		name := s.name + ".yaml"
		names = append(names, name)
		files[path.Join(DashboardsDir, name)] = configMap(command, s)
	}
	files[path.Join(DashboardsDir, kustomizationFile)] = kustomization(command, "dashboards/json", names)
	return files, nil
}

type source struct {
	// file is its path in the repository, name a name for objects: the file's
	// own without its ending, as a DNS label.
	file, name, text string
}

func sources(root fs.FS, pattern string) ([]source, error) {
	names, err := fs.Glob(root, pattern)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: there is no such file", pattern)
	}
	var all []source
	for _, file := range names {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, err
		}
		all = append(all, newSource(file, string(text)))
	}
	return all, nil
}

func newSource(file, text string) source {
	name := strings.TrimSuffix(path.Base(file), path.Ext(file))
	return source{file: file, name: strings.ReplaceAll(name, "_", "-"), text: text}
}

// named are the sources of a folder, in order.
func named(folder string, files map[string]string) (all []source) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, newSource(path.Join(folder, name), files[name]))
	}
	return all
}

func checkDashboard(s source) error {
	var d struct {
		UID string `json:"uid"`
	}
	if err := json.Unmarshal([]byte(s.text), &d); err != nil {
		return err
	}
	if d.UID != s.name {
		return fmt.Errorf("its uid is %q: links between dashboards go by the uid, so it is the file's name", d.UID)
	}
	if len(s.text) > maxConfigMap {
		return fmt.Errorf("%d bytes do not fit into a ConfigMap (%d)", len(s.text), maxConfigMap)
	}
	if strings.ContainsAny(s.text, "\r\t") {
		return errors.New("tabs or carriage returns do not survive in a YAML block")
	}
	return nil
}

const kustomizationFile = "kustomization.yaml"

// header marks a generated file for Go's tools.
func header(command, from string) string {
	return fmt.Sprintf("# Code generated from %s by %q; DO NOT EDIT.\n", from, command)
}

// prometheusRule wraps a rule file for the Prometheus operator: its text, comments
// included, is the spec.
func prometheusRule(command string, s source) []byte {
	return []byte(header(command, s.file) + `apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: stormglass-` + s.name + `
  labels: {app.kubernetes.io/part-of: stormglass}
spec:
` + indent(s.text, "  "))
}

func configMap(command string, s source) []byte {
	return []byte(header(command, s.file) + `apiVersion: v1
kind: ConfigMap
metadata:
  name: ` + s.name + `-dashboard
  labels: {app.kubernetes.io/part-of: stormglass, ` + DashboardLabel + `: "1"}
  annotations: {` + FolderAnnotation + `: Stormglass}
data:
  ` + s.name + `.json: |
` + indent(s.text, "    "))
}

func kustomization(command, from string, names []string) []byte {
	var b strings.Builder
	b.WriteString(header(command, from))
	b.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: " + Namespace + "\nresources:\n")
	for _, name := range names {
		b.WriteString("  - " + name + "\n")
	}
	return []byte(b.String())
}

// indent puts prefix before each line of text that is not empty, and ends it
// with one line feed.
func indent(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if line != "\n" {
			b.WriteString(prefix)
		}
		b.WriteString(line)
	}
	return b.String()
}
