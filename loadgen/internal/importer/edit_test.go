package importer

import (
	"strconv"
	"strings"
	"testing"

	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
)

func TestLabelsArePutIntoTemplates(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"labels that are there": {
			"kind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    x: \"1\"\n",
			"kind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    job: \"j\"\n    x: \"1\"\n",
		},
		"no labels": {
			"{{- $x := 1 }}\nkind: ConfigMap\nmetadata:\n    name: a-{{$x}}\n",
			"{{- $x := 1 }}\nkind: ConfigMap\nmetadata:\n    labels:\n      job: \"j\"\n    name: a-{{$x}}\n",
		},
		"a template of pods, in the second document": {
			"kind: A\nmetadata:\n  name: a\n---\n# b\nkind: DaemonSet\nmetadata:\n  name: b\nspec:\n  template:\n    spec: {}\n",
			"kind: A\nmetadata:\n  labels:\n    job: \"j\"\n  name: a\n---\n# b\nkind: DaemonSet\nmetadata:\n  labels:\n    job: \"j\"\n  name: b\nspec:\n  template:\n    metadata:\n      labels:\n        job: \"j\"\n    spec: {}\n",
		},
		"mappings on one line": {
			"kind: A\nmetadata: {name: a}\n---\nkind: DaemonSet\nmetadata:\n  name: b\n  labels: {}\nspec:\n  template: {metadata: {labels: {app: \"{{.Replica}}\"}}, spec: {}}\n",
			"kind: A\nmetadata: {labels: {job: \"j\"}, name: a}\n---\nkind: DaemonSet\nmetadata:\n  name: b\n  labels: {job: \"j\", }\nspec:\n  template: {metadata: {labels: {job: \"j\", app: \"{{.Replica}}\"}}, spec: {}}\n",
		},
	} {
		got, ok := addLabels(bounds.NewBounds(), c.text, replicas(2), false, always(map[string]string{"job": "j"}))
		if !ok || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, ok, got, c.want)
		}
	}
}

func always(labels map[string]string) func(int) map[string]string {
	return func(int) map[string]string { return labels }
}

// Values of labels may be templates and may differ by document.
func TestLabelsOfDocumentsAndReplicas(t *testing.T) {
	const text = "kind: A\nmetadata:\n  name: a\n---\nkind: B\nmetadata:\n  name: b\n"
	got, ok := addLabels(bounds.NewBounds(), text, replicas(3), false, func(document int) map[string]string {
		return map[string]string{"n": "{{.Replica}}", "document": strconv.Itoa(document)}
	})
	want := "kind: A\nmetadata:\n  labels:\n    document: \"0\"\n    n: \"{{.Replica}}\"\n  name: a\n---\n" +
		"kind: B\nmetadata:\n  labels:\n    document: \"1\"\n    n: \"{{.Replica}}\"\n  name: b\n"
	if !ok || got != want {
		t.Errorf("%v\n%s\nwant\n%s", ok, got, want)
	}
}

// Pods get the labels of their Deployment, as in kube-burner.
func TestPodsInheritLabels(t *testing.T) {
	const text = "kind: Deployment\nmetadata:\n  name: a\n  labels:\n    tier: '{{.Replica}}'\n    app: a\nspec:\n  template:\n    metadata:\n      labels: {app: a}\n    spec: {}\n"
	want := strings.NewReplacer("labels:\n    tier", "labels:\n    job: \"j\"\n    tier", "{app", "{job: \"j\", tier: '{{.Replica}}', app").Replace(text)
	got, ok := addLabels(bounds.NewBounds(), text, replicas(2), true, always(map[string]string{"job": "j"}))
	if !ok || got != want {
		t.Errorf("%v\n%s\nwant\n%s", ok, got, want)
	}
}

// A text to which the labels cannot be added stays unchanged.
func TestTemplatesInOneLineAreLeft(t *testing.T) {
	for _, text := range []string{
		"{kind: ConfigMap, metadata: {name: a}}\n",
		"{{- if eq .Replica 1 }}\nkind: A\nmetadata:\n  name: a\n{{- else }}\nkind: A\nmetadata:\n  name: b\n{{- end }}\n",
	} {
		if got, ok := addLabels(bounds.NewBounds(), text, replicas(2), false, always(map[string]string{"job": "j"})); ok || got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// replicas returns the template values for the first n replicas.
func replicas(n int) (all []map[string]any) {
	for i := range n {
		all = append(all, map[string]any{"Replica": i + 1})
	}
	return all
}
