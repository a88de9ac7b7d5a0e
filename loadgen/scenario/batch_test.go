package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const batches = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: batches
seed: 7
phases:
  - name: fill
    for: 10s
    actions:
      - kind: create
        iterations: 3
        namespaces: 2
        vars: {size: 4}
        templates:
          - {file: web.yaml, replicas: 2}
          - {object: {apiVersion: v1, kind: Secret, metadata: {name: "s-{{.Iteration}}"}, stringData: {size: "{{.size}}"}}, vars: {size: 5}}
`

const web = `# the shop
apiVersion: v1
kind: ConfigMap
metadata: {name: "c-{{.Iteration}}-{{.Replica}}"}
data: {size: "{{.size}}", token: "{{randAlphaNum 6}}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "d-{{.Iteration}}-{{.Replica}}"}
`

func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestObjectsOfABatchInOrder(t *testing.T) {
	dir := writeFiles(t, map[string]string{"s.yaml": batches, "web.yaml": web})
	s, err := Read(filepath.Join(dir, "s.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.BatchNamespaces("run"); !slices.Equal(got, []string{"run", "run-1"}) {
		t.Errorf("namespaces %v", got)
	}
	l := Load{Kind: "objects", Name: "fill", Namespaces: 5, Templates: s.Batches()[0].Templates}
	if got := l.NamespacesIn("run"); len(got) != 1 { // BatchNamespaces returns the namespaces of batches
		t.Errorf("NamespacesIn of an objects load = %v, want one namespace", got)
	}
	all, err := s.Expand(s.Batches()[0])
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != "6 ConfigMap, 6 Deployment, 3 Secret" || all.Len() != 15 {
		t.Errorf("%d objects: %s", all.Len(), all)
	}
	var got []string
	tokens := map[any]bool{}
	for n := range all.Len() {
		o, err := all.At(n)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d/%s", o.Namespace, o.Name))
		if kind := all.Kinds()[all.KindAt(n)].Kind; kind != o.Kind {
			t.Errorf("object %d is a %s by its number, and a %s", n, kind, o.Kind)
		}
		if data, ok := o.Manifest["data"].(map[string]any); ok {
			tokens[data["token"]] = true
			if data["size"] != "4" {
				t.Errorf("size %v of %s", data["size"], o.Name)
			}
		}
		if o.Kind == "Deployment" && !strings.HasSuffix(o.Place, "web.yaml:7") {
			t.Errorf("the path of %s is %s", o.Name, o.Place)
		}
	}
	want := strings.Fields(`0/c-0-1 0/d-0-1 0/c-0-2 0/d-0-2 0/s-0  0/c-1-1 0/d-1-1 0/c-1-2 0/d-1-2 0/s-1  1/c-2-1 1/d-2-1 1/c-2-2 1/d-2-2 1/s-2`)
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if len(tokens) != 6 {
		t.Errorf("the batch drew %d tokens for 6 objects", len(tokens))
	}
	again, err := s.Expand(s.Batches()[0])
	if err != nil {
		t.Fatal(err)
	}
	if o, err := again.At(2); err != nil || !tokens[o.Manifest["data"].(map[string]any)["token"]] {
		t.Errorf("another token with the same seed: %v, %v", o, err)
	}
}

// The resolved scenario of a run contains the contents of the files, so that it can run again.
func TestResolvedBatchHasItsFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{"s.yaml": strings.Replace(batches, "web.yaml", "all", 1), "all/a.yaml": web, "all/sub/b.yml": web, "all/notes.txt": "x"})
	s, err := Read(filepath.Join(dir, "s.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("scenario.yaml", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(again.Phases[0].Actions[0].Templates); got != 3 {
		t.Errorf("%d templates, want two files and an object", got)
	}
}

// kubectlOf puts a shell script called kubectl on PATH.
func kubectlOf(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// kubectl builds a kustomization, and its output is a template.
func TestBatchOfAKustomization(t *testing.T) {
	dir := writeFiles(t, map[string]string{"s.yaml": strings.Replace(batches, "web.yaml", "overlay", 1), "overlay/kustomization.yaml": "resources: [web.yaml]", "overlay/web.yaml": web})
	kubectlOf(t, `[ "$1" = kustomize ] && cat "$2"/web.yaml`)
	s, err := Read(filepath.Join(dir, "s.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := s.Expand(s.Batches()[0]); err != nil || all.Len() != 15 {
		t.Errorf("%v, %v", all, err)
	}
	kubectlOf(t, `echo "error: no such resource" >&2; exit 1`)
	if _, err := Read(filepath.Join(dir, "s.yaml"), nil); err == nil || !strings.Contains(err.Error(), "cannot read overlay: kubectl kustomize: no such resource") {
		t.Error(err)
	}
	kubectlOf(t, `head -c 70000000 /dev/zero`)
	if _, err := Read(filepath.Join(dir, "s.yaml"), nil); err == nil || !strings.Contains(err.Error(), "more than 64 MiB in total") {
		t.Errorf("a large output: %.200v", err)
	}
}

// The total size of the files in a directory is limited, because links can make one file appear many times.
func TestDirectoriesOfManifestsAreBounded(t *testing.T) {
	dir := writeFiles(t, map[string]string{"s.yaml": strings.Replace(batches, "web.yaml", "links", 1), "links/0.yaml": strings.Repeat("#", 4<<20)})
	for i := range 16 {
		if err := os.Symlink("0.yaml", filepath.Join(dir, "links", fmt.Sprintf("link-%d.yaml", i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(filepath.Join(dir, "s.yaml"), nil); err == nil || !strings.Contains(err.Error(), "cannot read links: its manifests have more than 64 MiB in total") {
		t.Errorf("%.200v", err)
	}
}

func TestErrorsOfBatches(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"web.yaml", "no.yaml"}:                            `s.yaml:15: phases.fill.actions[0].templates[0].file: cannot read`,
		{"web.yaml", "empty"}:                              `the directory has no *.yaml, *.yml or *.json`,
		{"web.yaml", "cut.yaml"}:                           `cut.yaml:1: unclosed action`,
		{"web.yaml", "value.yaml"}:                         `value.yaml:3: <.missing>: there is no value "missing" (give it one: vars: {missing: ...})`,
		{"web.yaml", "same.yaml"}:                          `same.yaml:1: two objects have the name "same" (use {{.Replica}} and {{.Iteration}} in the name)`,
		{"web.yaml", "mod.yaml"}:                           `mod.yaml:1: two objects have the name "m-1"`,
		{"web.yaml", "huge.yaml"}:                          `huge.yaml:4: <randAlphaNum 2000000000>: error calling randAlphaNum: a text of 2000000000 is too large: at most 4194304`,
		{"web.yaml", "long.yaml"}:                          `long.yaml: the template renders more than 16 MiB`,
		{"web.yaml", "kind.yaml"}:                          `kind.yaml:2: Kubernetes has no Deployment of v1 (write apiVersion: apps/v1)`,
		{"web.yaml", "nameless.yaml"}:                      `nameless.yaml:1: the Pod has no name`,
		{"web.yaml", "none.yaml"}:                          `none.yaml: the template renders no manifest`,
		{"web.yaml", "some.yaml"}:                          `some.yaml: the template renders 2 manifests for the first replica, but 1 for the last; the numbers must be equal`,
		{"iterations: 3", "iterations: 1"}:                 `1 iterations are too few for 2 namespaces: some namespaces would stay empty`,
		{"replicas: 2", "replicas: 1000000"}:               `3000003 objects (at most 1000000 objects)`,
		{"{file: web.yaml, replicas: 2}", "{replicas: 2}"}: `this template has no manifest`,
		{"{file: web.yaml, replicas: 2}", "{file: web.yaml, text: x, object: {a: b}}"}: `this template has 3 manifests instead of one`,
		{"kind: create", "kind: delete"}:                                               `this field has no effect in delete`,
		{"kind: create", "kind: create\n        name: x"}:                              `only actions on deployed workloads have this field`,
		{"s-{{.Iteration}}", "s"}:                                                      `two objects have the name "s"`,
		{"kind: create", "kind: create\n        after: 10s"}:                           `10s is not within phase "fill" (less than 10s)`,
		{"kind: create", "kind: create\n        every: 10ms"}:                          `10ms is out of bounds`,
		{"kind: create", "kind: patch\n        target: {resource: pod}"}:               `Kubernetes has no resource "pod"`,
	} {
		files := map[string]string{
			"s.yaml": strings.Replace(batches, change[0], change[1], 1), "web.yaml": web,
			"cut.yaml": "a: {{.x", "value.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{.missing}}\"}",
			"same.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same}", "kind.yaml": "\napiVersion: v1\nkind: Deployment\nmetadata: {name: \"{{.Replica}}\"}",
			"mod.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"m-{{mod .Replica 1 | add 1}}\"}",
			"huge.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{.Replica}}\"}\ndata: {a: \"{{randAlphaNum 2000000000}}\"}",
			"long.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{.Replica}}\"}\ndata: {a: \"{{range until 20}}{{randAlphaNum 1000000}}{{end}}\"}",
			"nameless.yaml": "apiVersion: v1\nkind: Pod", "none.yaml": "# nothing\n", "empty/x.txt": "",
			"some.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: \"{{.Replica}}\"}\n{{if eq .Replica 1}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: \"x{{.Replica}}\"}\n{{end}}",
		}
		dir := writeFiles(t, files)
		if _, err := Read(filepath.Join(dir, "s.yaml"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", change[1], err, want)
		}
	}
}

// Templates with everyIterations are ordered with the other templates, use the namespaces of their iterations, and count only
// their own iterations. A range of iterations renders the same objects as in the whole batch.
func TestObjectsOfSomeIterations(t *testing.T) {
	const text = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: some
phases:
  - name: fill
    for: 10s
    actions:
      - kind: create
        iterations: 5
        namespaces: 5
        templates:
          - {object: {apiVersion: v1, kind: Secret, metadata: {name: "s-{{.Iteration}}-{{.Replica}}"}}, replicas: 2, everyIterations: 2}
          - {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Iteration}}"}}}
          - {object: {apiVersion: v1, kind: Service, metadata: {name: once}}, everyIterations: 5}
`
	objects := func(change string) (all []string, kinds string) {
		t.Helper()
		s, err := Parse("some.yaml", []byte(strings.Replace(text, "namespaces: 5", "namespaces: 5\n        "+change, 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		of, err := s.Expand(s.Batches()[0])
		if err != nil {
			t.Fatal(err)
		}
		for n := range of.Len() {
			o, err := of.At(n)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s in %d", o.Name, o.Namespace))
			if of.Kinds()[of.KindAt(n)].Kind != o.Kind {
				t.Errorf("object %d is a %s, and of kind %s", n, o.Kind, of.Kinds()[of.KindAt(n)].Kind)
			}
			slots, namespace, ok, err := of.Slots(n)
			if err != nil || ok && namespace != o.Namespace {
				t.Errorf("object %d is in %d, its outline's values %v in %d: %v", n, o.Namespace, slots, namespace, err)
			}
		}
		firsts, err := of.Firsts()
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range of.Kinds() {
			if firsts[i].Kind != k.Kind {
				t.Errorf("the first %s is a %s", k.Kind, firsts[i].Kind)
			}
		}
		return all, of.String()
	}
	whole, kinds := objects("")
	want := []string{
		"s-0-1 in 0", "s-0-2 in 0", "c-0 in 0", "once in 0", "c-1 in 1", "s-1-1 in 2", "s-1-2 in 2", "c-2 in 2", "c-3 in 3", "s-2-1 in 4", "s-2-2 in 4", "c-4 in 4",
	}
	if !slices.Equal(whole, want) || kinds != "6 Secret, 5 ConfigMap, 1 Service" {
		t.Errorf("%s: %v\nwant %v", kinds, whole, want)
	}
	for change, want := range map[string][]string{
		"fromIteration: 0\n        toIteration: 1": whole[:4], "fromIteration: 1": whole[4:], "toIteration: 3": whole[:8], "fromIteration: 1\n        toIteration: 2": whole[4:5],
	} {
		if part, kinds := objects(change); !slices.Equal(part, want) {
			t.Errorf("%s: %s: %v\nwant %v", change, kinds, part, want)
		}
	}
}

const grouped = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: groups
namespaces:
  - {name: alpha, count: 3, labels: {tier: one}}
  - {name: beta}
objects:
  - namespaces: 2
    templates: [{object: {apiVersion: v1, kind: Secret, metadata: {name: s}}}]
phases:
  - name: fill
    for: 1m
    load:
      - kind: objects
        rate: 1/s
        namespaceGroup: alpha
        iterations: 5
        iterationsPerNamespace: 2
        templates:
          - {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Iteration}}"}}}
          - {object: {apiVersion: v1, kind: Secret, metadata: {name: "s-{{.Iteration}}", namespace: "{{if eq .Iteration 1}}alpha-2{{else}}beta{{end}}"}}}
    actions:
      - {kind: delete, target: {resource: secrets, namespaceGroup: beta}}
gates: [{name: one, objective: phase-duration, max: 1h}]
`

// Batches with a group use the group's namespaces, which follow the run's namespaces in the list. A manifest's namespace has precedence if it
// belongs to a group.
func TestBatchInAGroupOfNamespaces(t *testing.T) {
	namespaces := func(text string) (names []string, all *Objects) {
		t.Helper()
		s, err := Parse("some.yaml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		of := s.BatchNamespaces("run")
		if want := []string{"run", "run-1", "alpha-0", "alpha-1", "alpha-2", "beta"}; !slices.Equal(of, want) {
			t.Fatalf("namespaces %v, want %v", of, want)
		}
		if all, err = s.Expand(s.Batches()[1]); err != nil {
			t.Fatal(err)
		}
		for n := range all.Len() {
			o, err := all.At(n)
			if err != nil {
				t.Fatal(err)
			}
			if _, namespace, ok, err := all.Slots(n); err != nil || ok && namespace != o.Namespace {
				t.Errorf("%s: the outline's namespace is %d instead of %d: %v", &o, namespace, o.Namespace, err)
			}
			names = append(names, of[o.Namespace]+"/"+o.Name)
		}
		return names, all
	}
	got, _ := namespaces(grouped)
	want := []string{
		"alpha-0/c-0", "beta/s-0", "alpha-0/c-1", "alpha-2/s-1", "alpha-1/c-2", "beta/s-2", "alpha-1/c-3", "beta/s-3", "alpha-2/c-4", "beta/s-4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("objects\n%v, want\n%v", got, want)
	}
	for change, want := range map[string][3]any{ // iterations, namespaces and the namespace of the last ConfigMap
		"iterations: 6":                           {6, 3, "alpha-2"}, // spread evenly
		"iterations: 2":                           {2, 2, "alpha-1"},
		"namespaces: 1":                           {1, 1, "alpha-0"},
		"iterationsPerNamespace: 4":               {12, 3, "alpha-2"},
		"iterations: 5\n        namespaces: 2":    {5, 2, "alpha-1"},
		"vars: {a: b}":                            {3, 3, "alpha-2"},
		"iterations: 9\n        fromIteration: 8": {9, 3, "alpha-2"},
	} {
		got, all := namespaces(strings.Replace(grouped, "iterations: 5\n        iterationsPerNamespace: 2", change, 1))
		last, _, _ := strings.Cut(got[len(got)-2], "/")
		if have := [3]any{all.batch.Iterations, all.batch.Namespaces, last}; have != want {
			t.Errorf("%s: %v, want %v", change, have, want)
		}
	}
}

func TestNamespaceGroupsAreValidated(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"count: 3", "count: 0"}:                                    `some.yaml:5: namespaces.alpha.count: 0 would mean the default: one namespace NAME`,
		{"count: 3", "count: -1"}:                                   `some.yaml:5: namespaces.alpha.count: -1 is out of bounds (from 0 to 10000)`,
		{"name: beta", "name: alpha-1"}:                             `some.yaml:6: namespaces.alpha-1.name: group "alpha" also has a namespace alpha-1 (rename one of the groups)`,
		{"name: beta", "name: alpha"}:                               `some.yaml:6: namespaces[1].name: group "alpha" appears twice (give each group a unique name)`,
		{"name: beta", "name: Beta"}:                                `some.yaml:6: namespaces.Beta.name: "Beta" is not a namespace name (lower-case letters, digits and -, at most 63)`,
		{"name: beta", "name: kube-system"}:                         `some.yaml:6: namespaces.kube-system.name: every cluster already has a namespace kube-system (choose another name)`,
		{"name: beta", "name: default"}:                             `some.yaml:6: namespaces.default.name: every cluster already has a namespace default (choose another name)`,
		{"name: beta", "name: stormglass-x"}:                        `some.yaml:6: namespaces.stormglass-x.name: names that begin with stormglass are for the run's other namespaces (choose another name)`,
		{"name: beta", "labels: {a: b}"}:                            `some.yaml:6: namespaces[1].name: is missing`,
		{"tier: one", "stormglass.dev/run: x"}:                      `some.yaml:5: namespaces.alpha.labels.stormglass.dev/run: only the run itself may set labels and annotations of stormglass.dev (leave it out)`,
		{"labels: {tier: one}", "annotations: {a b: c}"}:            `some.yaml:5: namespaces.alpha.annotations.a b: "a b" is not an annotation name`,
		{"namespaceGroup: alpha", "namespaceGroup: alhpa"}:          `some.yaml:16: phases.fill.load[0].namespaceGroup: unknown group of namespaces "alhpa" (did you mean "alpha"?`,
		{"namespaceGroup: beta", "namespaceGroup: bta"}:             `some.yaml:23: phases.fill.actions[0].target.namespaceGroup: unknown group of namespaces "bta" (did you mean "beta"?`,
		{"iterationsPerNamespace: 2", "namespaces: 4"}:              `some.yaml:18: phases.fill.load[0].namespaces: 4 namespaces are too many: group "alpha" has 3 (at most 3, or increase the count of the group)`,
		{"iterationsPerNamespace: 2", "iterationsPerNamespace: 1"}:  `some.yaml:18: phases.fill.load[0].iterationsPerNamespace: 5 iterations need 5 namespaces, but group "alpha" has 3 (increase it, or the count of the group)`,
		{"iterations: 5", "namespaces: 3\n        iterations: 4"}:   `phases.fill.load[0].namespaces: 4 iterations fill 2 namespaces, not 3 (leave it out, or leave out iterationsPerNamespace)`,
		{"iterationsPerNamespace: 2", "iterationsPerNamespace: -2"}: `phases.fill.load[0].iterationsPerNamespace: -2 is out of bounds`,
		{"{kind: delete, target: {resource: secrets, namespaceGroup: beta}}", "{kind: deploy, name: web, replicas: 1, namespaceGroup: beta}"}: `phases.fill.actions.web.namespaceGroup: this field has no effect in deploy (it applies only to create, apply)`,
		{`{name: "c-{{.Iteration}}"}`, `{name: "s-{{.Iteration}}", namespace: beta}`}:                                                         ``, // a name of another kind
		{"kind: ConfigMap, metadata: {name: \"c-{{.Iteration}}\"}", "kind: Secret, metadata: {name: c, namespace: beta}"}:                     `two objects have the name "c"`,
	} {
		_, err := Parse("some.yaml", []byte(strings.Replace(grouped, change[0], change[1], 1)), nil)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", change[1], err, want)
		}
	}
}
