package alerting

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const plainRules = `groups:
  - name: plain
    rules: [{alert: Plain, expr: up == 0}]
`

const objectRules = `apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: mine
  labels: &labels {team: a}
spec:
  groups:
    - name: of-an-object
      partial_response_strategy: abort # only Thanos reads this
      rules:
        - alert: Object
          expr: |
            up{job="etcd"}
              == 0
          labels: *labels
`

const listRules = `{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Service", "spec": {"ports": []}},
  {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "spec": {"groups": [
    {"name": "of-a-list", "rules": [{"alert": "Item", "expr": "up == 0"}]}]}},
  {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "spec": {}}]}
`

func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Rules come as Prometheus' files, as objects of the Prometheus operator, as lists of them, in several documents and in
// directories.
func TestRead(t *testing.T) {
	dir := directory(t, map[string]string{
		"plain.yml": plainRules, "object.yaml": objectRules, "list.json": listRules, "both.yaml": plainRules + "---\n" + objectRules + "---\n", "README.md": "# no rules",
	})
	for path, want := range map[string]string{
		"plain.yml": "Plain", "object.yaml": "Object", "list.json": "Item", "both.yaml": "Plain Object", ".": "Plain Object Item Object Plain",
	} {
		set, note, err := Read(filepath.Join(dir, path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var names []string
		for _, r := range set.where(isAlert) {
			names = append(names, r.Alert)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: alerts %s, want %s", path, got, want)
		}
		skipped := ""
		if path == "." || path == "list.json" {
			skipped = filepath.Join(dir, path) + ": skipped objects that are not rules: Service"
		}
		if note != skipped {
			t.Errorf("%s: note %q", path, note)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	many := "groups:\n  - name: g\n    rules:\n" + strings.Repeat("      - {record: a, expr: up}\n", maxRules+1)
	dir := directory(t, map[string]string{"service.yaml": "apiVersion: v1\nkind: Service\n", "many.yaml": many})
	empty := directory(t, nil)
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"):    "no such file or directory",
		filepath.Join(dir, "service.yaml"): "no rules, only Service (write groups: as for Prometheus, or kind: PrometheusRule)",
		filepath.Join(dir, "many.yaml"):    "it has 5001 rules, the limit is 5000 (split it)",
		empty:                              "the directory has no *.yaml, *.yml or *.json",
	} {
		if _, _, err := Read(path); err == nil || err.Error() != path+": "+want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// No file makes the parser panic, and each error is one line with the name of the file.
func FuzzParse(f *testing.F) {
	for _, text := range []string{plainRules, objectRules, listRules, "groups: &g [*g]\n", "kind: List\nitems: [{kind: List, items: [1]}]\n", "groups: [{? [a] : b, name: !x 2026-01-01, rules: }]\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Parse("r.yaml", text); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "r.yaml:") {
					t.Errorf("%q: %q", text, line)
				}
			}
		}
	})
}

// Each key that the schema of prometheus-operator's PrometheusRule defines has an effect, and an unknown one is an error.
func TestKeysOfPrometheusRulesAreNoticed(t *testing.T) {
	const text = `apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
spec:
  groups:
    - name: a
      labels: {b: c}
      interval: 20s
      limit: 3
      query_offset: 7s
      rules:
        - alert: Up
          expr: up == 0
          for: 11s
          keep_firing_for: 13s
          labels: {d: e}
          annotations: {f: g}
        - record: h
          expr: up
`
	result := func(text string) string {
		set, err := Parse("r.yaml", []byte(text))
		return fmt.Sprintf("%+v %v", set, err)
	}
	lines, before := strings.Split(text, "\n"), result(text)
	for i, line := range lines[:len(lines)-1] {
		key, _, _ := strings.Cut(strings.TrimLeft(line, " -"), ":")
		other := slices.Clone(lines)
		other[i] = strings.Replace(line, key+":", "zz:", 1)
		if got := result(strings.Join(other, "\n")); got == before {
			t.Errorf("the result is the same without %s", key)
		}
		if strings.Contains(line, "{") {
			continue // labels and annotations
		}
		other[i] = strings.Replace(line, key+":", "zz: 1\n"+strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " -")))+key+":", 1)
		if _, err := Parse("r.yaml", []byte(strings.Join(other, "\n"))); err == nil || !strings.Contains(err.Error(), "zz") {
			t.Errorf("an unknown key before %s: %v", key, err)
		}
	}
}
