// Package deploy generates a PrometheusRule from each rule file, and a ConfigMap from each dashboard. The other files
// in deploy/ are written by hand: compose/ for a control plane on this machine, github-actions/ for pull requests, and
// the scrape objects in kubernetes/ for a Prometheus operator.
//
// The PrometheusRules of deploy/kubernetes are checked in: kubectl needs only a checkout. "go run ./deploy/generate"
// writes them, and a test verifies that they match their sources. Kustomize creates the ConfigMaps
// (dashboards/kustomization.yaml).
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

// Namespace is the namespace of the generated objects. A user's kustomization can change it.
const Namespace = "monitoring"

// DashboardLabel is the label, with the value "1", by which Grafana's sidecar finds ConfigMaps with dashboards (the
// default of Grafana's chart). FolderAnnotation is the annotation with the name of Grafana's folder for a dashboard. A
// sidecar reads it only if its configuration names it.
const (
	DashboardLabel   = "grafana_dashboard"
	FolderAnnotation = "grafana_folder"
)

// The directories of the generated files. deploy/kubernetes/rules contains only generated files.
const (
	RulesDir      = "rules"
	DashboardsDir = "dashboards"
)

// maxConfigMap is the maximum size of a ConfigMap's data in bytes. The API server refuses larger ConfigMaps.
const maxConfigMap = 1 << 20

// Manifests returns the generated manifests, by their paths below deploy/kubernetes. The sources are alerts/*.yaml in
// root, the root of the repository. It fails if there are no rule files, or if a rule file has no line "groups:".
func Manifests(root fs.FS) (map[string][]byte, error) {
	all, err := sources(root, "alerts/*.yaml")
	if err != nil {
		return nil, err
	}
	return rules("go run ./deploy/generate", all)
}

// Objects returns manifests by path: a PrometheusRule for each rule file, a ConfigMap for each dashboard, and a
// kustomization for each of the two directories. The arguments map file names such as "etcd.yaml" to their text. The
// first line of each manifest says that `command` has generated it.
//
// It fails if a rule file has no line "groups:". It also fails if a dashboard is not a JSON object whose "uid" is the
// file's name, is too large for a ConfigMap, or contains tabs or carriage returns.
func Objects(command string, ruleFiles, dashboards map[string]string) (map[string][]byte, error) {
	files, err := rules(command, named("rules", ruleFiles))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range named("dashboards", dashboards) {
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

func rules(command string, all []source) (map[string][]byte, error) {
	files := map[string][]byte{}
	var names []string
	for _, s := range all {
		if !strings.Contains("\n"+s.text, "\ngroups:\n") {
			return nil, fmt.Errorf("%s: the line \"groups:\" is missing", s.file)
		}
		name := s.name + ".yaml"
		names = append(names, name)
		files[path.Join(RulesDir, name)] = prometheusRule(command, s)
	}
	files[path.Join(RulesDir, kustomizationFile)] = kustomization(command, "alerts", names)
	return files, nil
}

type source struct {
	// file is the path of the source in the repository. name is the part of object names that comes from the source:
	// the file's name without its extension, as a DNS label.
	file, name, text string
}

func sources(root fs.FS, pattern string) ([]source, error) {
	names, err := fs.Glob(root, pattern)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no such file", pattern)
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

// named returns the files of a directory as sources, sorted by name. files maps file names to their text.
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
		return fmt.Errorf("its uid is %q: it must be the file's name, because links between dashboards use the uid", d.UID)
	}
	if len(s.text) > maxConfigMap {
		return fmt.Errorf("%d bytes do not fit into a ConfigMap (%d)", len(s.text), maxConfigMap)
	}
	if strings.ContainsAny(s.text, "\r\t") {
		return errors.New("a YAML block cannot contain tabs and carriage returns")
	}
	return nil
}

const kustomizationFile = "kustomization.yaml"

// header returns the first line of a generated file, in the format by which Go's tools recognize generated files.
func header(command, from string) string {
	return fmt.Sprintf("# Code generated from %s by %q; DO NOT EDIT.\n", from, command)
}

// prometheusRule returns a PrometheusRule whose spec is the text of the rule file s, including comments.
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

// indent adds prefix to each nonempty line of text. The result ends with exactly one line feed.
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
