package importer

import (
	"strings"
	"testing"
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
	} {
		got, ok := addLabels(c.text, replicas(2), map[string]string{"job": "j"})
		if !ok || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, ok, got, c.want)
		}
	}
}

// A text in which the labels cannot be put stays as it is.
func TestTemplatesInOneLineAreLeft(t *testing.T) {
	for _, text := range []string{
		"{kind: ConfigMap, metadata: {name: a}}\n",
		"kind: ConfigMap\nmetadata: {name: a}\n",
		"{{- if eq .Replica 1 }}\nkind: A\nmetadata:\n  name: a\n{{- else }}\nkind: A\nmetadata:\n  name: b\n{{- end }}\n",
	} {
		if got, ok := addLabels(text, replicas(2), map[string]string{"job": "j"}); ok || got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// replicas are the values of the first replicas.
func replicas(n int) (all []map[string]any) {
	for i := range n {
		all = append(all, map[string]any{"Replica": i + 1})
	}
	return all
}

func TestNodeSelectorsAreTakenOut(t *testing.T) {
	const text = "kind: Pod\nmetadata:\n  name: a\nspec:\n  nodeSelector:\n    node-role.kubernetes.io/worker: \"\"\n%s  containers: []\n"
	for kept, want := range map[string]string{
		"":                              strings.Replace(text, "  nodeSelector:\n    node-role.kubernetes.io/worker: \"\"\n%s", "", 1),
		"    kubernetes.io/os: linux\n": strings.Replace(text, "    node-role.kubernetes.io/worker: \"\"\n%s", "    kubernetes.io/os: linux\n", 1),
	} {
		got, ok := dropNodeSelectors(strings.Replace(text, "%s", kept, 1), replicas(1), []string{"node-role.kubernetes.io/worker"})
		if !ok || got != want {
			t.Errorf("%v\n%s\nwant\n%s", ok, got, want)
		}
	}
}
