package deploy

import (
	"fmt"
	"strings"
)

const kustomizationFile = "kustomization.yaml"

// header marks a generated file for Go's tools.
func header(from string) string {
	return fmt.Sprintf("# Code generated from %s by \"go run ./deploy/generate\"; DO NOT EDIT.\n", from)
}

// prometheusRule wraps a rule file for the Prometheus operator: its text, comments
// included, is the spec.
func prometheusRule(s source) []byte {
	return []byte(header(s.file) + `apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: stormglass-` + s.name + `
  labels: {app.kubernetes.io/part-of: stormglass}
spec:
` + indent(s.text, "  "))
}

// configMap is a dashboard as Grafana's sidecar takes it.
func configMap(s source) []byte {
	return []byte(header(s.file) + `apiVersion: v1
kind: ConfigMap
metadata:
  name: ` + s.name + `-dashboard
  labels: {app.kubernetes.io/part-of: stormglass, ` + DashboardLabel + `: "1"}
  annotations: {` + FolderAnnotation + `: Stormglass}
data:
  ` + s.name + `.json: |
` + indent(s.text, "    "))
}

// kustomization lists the manifests of one generated folder.
func kustomization(from string, names []string) []byte {
	var b strings.Builder
	b.WriteString(header(from))
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
