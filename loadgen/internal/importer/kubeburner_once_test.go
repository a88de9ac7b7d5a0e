package importer

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// kube-burner creates an object only if its namespace has no object with its name. EACH is a bool, but the
// configuration compares it with a string.
func TestObjectsOfOneName(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "same.yml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: same\n"))
	write(t, "role.yml", []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: same\n"))
	write(t, "replica.yml", []byte("apiVersion: v1\nkind: Secret\nmetadata:\n  name: s-{{.Replica}}\n"))
	write(t, "kb.yml", []byte(`jobs:
{{ if and (eq .EACH "true") (ne .COUNT 0) }}
  - name: each
    jobIterations: {{ .COUNT }}
    objects: [{objectTemplate: same.yml, replicas: 2}, {objectTemplate: role.yml, replicas: 1}, {objectTemplate: replica.yml, replicas: 2}]
    namespace: each
{{ end }}
  - name: one
    jobIterations: {{ .COUNT }}
    objects: [{objectTemplate: same.yml, replicas: 2}, {objectTemplate: replica.yml, replicas: 2}]
    namespace: one
    namespacedIterations: false
`))
	r, err := KubeBurner("kb.yml", Options{Values: map[string]any{"EACH": true, "COUNT": 3}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse("imported.yaml", r.Scenario, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range s.Batches() {
		all, err := s.Expand(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, all.String())
	}
	if want := []string{"3 ConfigMap, 1 ClusterRole, 6 Secret", "1 ConfigMap, 2 Secret"}; !slices.Equal(got, want) {
		t.Errorf("the scenario creates %q, want %q", got, want)
	}
	if len(r.Remarks) != 5 {
		t.Errorf("remarks: %v, want one for each kind of object that is created less often", r.Remarks)
	}
}

// kube-burner runs the hook afterChurn only after a churn. This job has no churn, because it removes its objects after
// each step.
func TestHookAfterMissingChurn(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "map.yml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'm{{.Iteration}}'}\n"))
	write(t, "config.yml", []byte(`jobs:
- name: grow
  incrementalLoad: {startIterations: 1, totalIterations: 2}
  churnConfig: {cycles: 1, percent: 50, mode: objects}
  hooks: [{when: afterChurn, cmd: [echo, done]}]
  objects: [{objectTemplate: map.yml}]
`))
	r, err := KubeBurner("config.yml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Hook afterChurn of job grow: kube-burner runs it only after a churn"; !strings.Contains(string(r.Scenario), want) {
		t.Errorf("the scenario does not contain %s:\n%s", want, r.Scenario)
	}
}
