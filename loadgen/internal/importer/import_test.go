package importer

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

var update = flag.Bool("update", false, "rewrite the scenarios and remarks in testdata")

// unpack writes the files of an archive to a new working directory for the test.
func unpack(t *testing.T, a *txtar.Archive) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range a.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// runImport runs the import in the first line of an archive: TOOL PATH NAME=VALUE..., with nodes= for the number of nodes.
func runImport(t *testing.T, line string) (*Result, error) {
	t.Helper()
	words := strings.Fields(line)
	var o Options
	var pairs []string
	for _, pair := range words[2:] {
		if n, ok := strings.CutPrefix(pair, "nodes="); ok {
			var err error
			if o.Nodes, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
			continue
		}
		pairs = append(pairs, pair)
	}
	var err error
	if o.Values, err = ParseValues(pairs, words[0] == "clusterloader2"); err != nil {
		t.Fatal(err)
	}
	switch words[0] {
	case "kube-burner":
		return KubeBurner(words[1], o)
	case "clusterloader2":
		return ClusterLoader2(words[1], o)
	}
	return Kwok(words[1:2], o)
}

// Each archive contains a configuration, the resulting scenario, and the remarks with the number of parts.
func TestImports(t *testing.T) {
	forEachArchive(t, func(t *testing.T, file string, a *txtar.Archive, line string) {
		r, err := runImport(t, line)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse("imported.yaml", r.Scenario, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gate.Compile(plan.Of(s)); err != nil {
			t.Error(err)
		}
		if comments := bytes.Count(r.Scenario, []byte("NOT CARRIED OVER")); comments != len(r.Remarks) {
			t.Errorf("%d comments for %d remarks", comments, len(r.Remarks))
		}
		var remarks strings.Builder
		for _, m := range r.Remarks {
			fmt.Fprintln(&remarks, m)
		}
		fmt.Fprintf(&remarks, "%d of %d whole\n", r.Whole, r.Items)
		for _, lost := range r.Lost {
			fmt.Fprintf(&remarks, "lost: %s\n", lost)
		}
		compare(t, file, a, map[string]string{"want.yaml": string(r.Scenario), "want.remarks": remarks.String()})
	})
}

// forEachArchive runs test in a directory with the files of each archive in testdata. line is the import in its first line.
func forEachArchive(t *testing.T, test func(t *testing.T, file string, a *txtar.Archive, line string)) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		file, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			unpack(t, a)
			line, _, _ := strings.Cut(string(a.Comment), "\n")
			test(t, file, a, line)
		})
	}
}

// compare compares the results with the files of the archive, or rewrites those files.
func compare(t *testing.T, file string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	for _, name := range []string{"want.yaml", "want.remarks"} {
		at := -1
		for i, f := range a.Files {
			if f.Name == name {
				at = i
			}
		}
		if at < 0 {
			at = len(a.Files)
			a.Files = append(a.Files, txtar.File{Name: name})
		}
		if !*update && string(a.Files[at].Data) != got[name] {
			t.Errorf("%s is\n%s\nwant\n%s", name, got[name], a.Files[at].Data)
		}
		a.Files[at].Data = []byte(got[name])
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// rollout imports the configuration in kube-burner-rollout.txtar.
func rollout(t *testing.T, o Options) *Result {
	t.Helper()
	a, err := txtar.ParseFile("testdata/kube-burner-rollout.txtar")
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, a)
	r, err := KubeBurner("config.yml", o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The scenario creates as many objects of each kind as the configuration: iterations times replicas.
func TestImportedObjectsAreCounted(t *testing.T) {
	r := rollout(t, Options{})
	s, err := scenario.Parse("imported.yaml", r.Scenario, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Expand(s.Batches()[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := all.String(), "12 Deployment, 6 ConfigMap"; got != want {
		t.Errorf("the scenario makes %s, want %s", got, want)
	}
	namespaces := map[string]int{}
	for n := range all.Len() {
		one, err := all.At(n)
		if err != nil {
			t.Fatal(err)
		}
		namespaces[s.BatchNamespaces("run")[one.Namespace]]++
	}
	if want := map[string]int{"shop-0": 6, "shop-1": 6, "shop-2": 6}; !maps.Equal(namespaces, want) {
		t.Errorf("objects by namespace: %v, want %v", namespaces, want)
	}
}

// Templates in separate files do not change the scenario.
func TestTemplatesBesideTheScenario(t *testing.T) {
	r := rollout(t, Options{Templates: "mine-templates"})
	if len(r.Files) != 2 || bytes.Contains(r.Scenario, []byte("text:")) {
		t.Fatalf("%d files next to the scenario\n%s", len(r.Files), r.Scenario)
	}
	for _, f := range append(r.Files, File{"mine.yaml", r.Scenario}) {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Read("mine.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Expand(s.Batches()[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := all.String(), "12 Deployment, 6 ConfigMap"; got != want {
		t.Errorf("the scenario makes %s, want %s", got, want)
	}
}

// Windows line endings do not change the result.
func TestWindowsLineEnds(t *testing.T) {
	a, err := txtar.ParseFile("testdata/kube-burner-rollout.txtar")
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, a)
	want, err := KubeBurner("config.yml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Files {
		a.Files[i].Data = bytes.ReplaceAll(a.Files[i].Data, []byte("\n"), []byte("\r\n"))
	}
	unpack(t, a)
	got, err := KubeBurner("config.yml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Scenario, want.Scenario) || len(got.Remarks) != len(want.Remarks) {
		t.Errorf("%d remarks and the scenario\n%s\nwant %d and\n%s", len(got.Remarks), got.Scenario, len(want.Remarks), want.Scenario)
	}
}

// For an invalid or unreadable configuration, the import returns one error that names the place.
func TestRefusedConfigurations(t *testing.T) {
	for _, c := range []struct{ tool, config, want string }{
		{"kube-burner", "a: 1\n", "config.yml: not a kube-burner configuration: the file has neither jobs nor global"},
		{"kube-burner", "jobs: [", "config.yml:1: invalid YAML: "},
		{"kube-burner", "jobs:\n- {name: a, qps: 1, burst: 1, jobIterations: many, objects: [{objectTemplate: x.yml}]}\n", `config.yml:2: jobs[0].jobIterations: "many" is not a number (write digits, such as 50)`},
		{"kube-burner", "jobs:\n- {name: a, jobType: dance}\n", `config.yml:2: jobs[0].jobType: kube-burner has no jobs of type "dance" (create, delete, patch, read, kubevirt)`},
		{"kube-burner", "jobs:\n- name: a\n  objects: [{objectTemplate: x.yml}]\n", "config.yml:3: jobs[0].objects[0].objectTemplate: cannot read x.yml: no such file or directory (paths are relative to the configuration's directory)"},
		{"kube-burner", "jobs:\n-\n- {name: a, jobType: delete}\n", "config.yml:2: jobs[0]: it is empty (write its fields, or leave it out)"},
		{"kube-burner", "jobs:\n- {name: a, churnConfig: {cycles: x}}\n", `config.yml:2: jobs[0].churnConfig.cycles: "x" is not a number (write digits, such as 50)`},
		{"kube-burner", "jobs:\n- {name: a, jobType: delete}\n- {name: a, jobType: delete}\n", "config.yml:3: jobs[1].name: two jobs have the name a (names must be unique)"},
		{"kube-burner", "jobs:\n- name: a\n  jobIterations: 20000000\n  objects: [{objectTemplate: x.yml}]\n", "config.yml:3: jobs[0].jobIterations: 20000000 iterations (a load makes at most 1000000 objects)"},
		{"kube-burner", "jobs:\n- name: a\n  jobIterations: 1e30\n  objects: [{objectTemplate: x.yml}]\n", "config.yml:3: jobs[0].jobIterations: 1e+30 is not a whole number (write digits, such as 50)"},
		{"kube-burner", "jobs:\n- name: a\n  objects:\n  - objectTemplate: x.yml\n    replicas: 5000000\n", "config.yml:5: jobs[0].objects[0].replicas: 5000000 replicas (a load makes at most 1000000 objects)"},
		{"kube-burner", "jobs:\n- name: a\n  qps: 9000000\n  objects: [{objectTemplate: x.yml}]\n", "config.yml:3: jobs[0].qps: 9e+06 requests a second (at most 100000)"},
		{"kube-burner", "jobs:\n- name: a\n  hooks: [{cmd: [ls], when: later}]\n", `config.yml:3: jobs[0].hooks[0].when: kube-burner has no hook time "later" (choose from: beforeJobExecution, afterJobExecution,`},
		{"kube-burner", "jobs:\n- name: a\n  hooks: [{when: beforeGC}]\n", "config.yml:3: jobs[0].hooks[0].cmd: the hook has no command (write cmd: [sh, -c, ...])"},
		{"kube-burner", "jobs:\n- name: {{ .NAME }}\n", "config.yml: it needs values: NAME (add --set NAME=..., or --set NAME= for an empty one)"},
		{"kube-burner", "jobs:\n- name: {{ nosuch }}\n", `config.yml:2: function "nosuch" not defined`},
		{"clusterloader2", "name: x\n", "config.yml: not a ClusterLoader2 test: the file has no steps"},
		{"clusterloader2", "name: {{AddInt .X 1}}\n", "config.yml:1:"},
		{"clusterloader2", "steps:\n- module: {path: /nowhere.yaml}\n", "config.yml:2: steps[0].module.path: nowhere.yaml: cannot read it: no such file or directory"},
		{"clusterloader2", "name: x\nn: {{AddInt .X 1}}\nsteps: []\n", "config.yml:2:"},
		{"clusterloader2", "tuningSets: [{name: s, qpsLoad: {qps: 1}}]\nsteps:\n- phases:\n  - {replicasPerNamespace: 5, tuningSet: s, objectBundle: [{basename: b, objectTemplatePath: nope.yaml}]}\n",
			"config.yml:4: steps[0].phases[0].objectBundle[0].objectTemplatePath: cannot read nope.yaml: no such file (paths are relative to the test's directory)"},
		{"kwok", "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nspec:\n  resourceRef: {kind: Pod}\n  delay: {durationMilliseconds: -5}\n  next: {statusTemplate: 'phase: Failed'}\n", "config.yml:5: spec.delay.durationMilliseconds: -5 is not a valid delay (from 0 to 86400000, which is 24h)"},
		{"kwok", "kind: Pod\n", "config.yml: the files contain no Stage of kwok.x-k8s.io"},
	} {
		unpack(t, &txtar.Archive{Files: []txtar.File{{Name: "config.yml", Data: []byte(c.config)}}})
		_, err := runImport(t, c.tool+" config.yml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %q:\n got %v\nwant %s", c.tool, c.config, err, c.want)
		}
		if err != nil && strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s of %q: more than a line: %v", c.tool, c.config, err)
		}
	}
}

// An object of a kind or version that Kubernetes lacks does not keep the rest of a job from being imported.
func TestKindsOfOtherClusters(t *testing.T) {
	unpack(t, txtar.Parse([]byte(`-- kb.yml --
jobs:
- name: a
  jobIterations: 2
  qps: 10
  burst: 10
  jobPause: 1000h
  objects: [{objectTemplate: dc.yml}, {objectTemplate: route.yml}, {objectTemplate: claim.yml}, {objectTemplate: vm.yml}]
-- dc.yml --
{apiVersion: v1, kind: DeploymentConfig, metadata: {name: "a-{{.Iteration}}"}}
-- route.yml --
{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: "a-{{.Iteration}}"}}
-- claim.yml --
{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaimTemplate, metadata: {name: "a-{{.Iteration}}"}}
-- vm.yml --
{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: "a-{{.Iteration}}"}}
`)))
	left := []string{
		"kb.yml:6: jobs[0].jobPause: 24h is used instead of 1000h: no phase is longer",
		"dc.yml: the object is left out: DeploymentConfig of v1 is not a kind of Kubernetes (write it as `kubectl api-resources` lists it)",
		"kb.yml:7: jobs[0].objects[2].objectTemplate: a bundled control plane does not serve ResourceClaimTemplate of resource.k8s.io/v1beta1 " +
			"(write apiVersion: resource.k8s.io/v1, or set controlPlane.apiServer.flags.runtime-config: resource.k8s.io/v1beta1=true)",
	}
	const lacks = "a bundled control plane has no %s: import with --stub-crds to define it, or run with --kubeconfig on a cluster that has it"
	for stubs, want := range map[bool][]string{
		false: {left[0], left[1], "kb.yml:7: jobs[0].objects[1].objectTemplate: " + fmt.Sprintf(lacks, "Route of route.openshift.io/v1"), left[2],
			"kb.yml:7: jobs[0].objects[3].objectTemplate: " + fmt.Sprintf(lacks, "VirtualMachine of kubevirt.io/v1")},
		true: append(left[:3:3], "kb.yml:7: jobs[0].objects[3]: the run does not wait for virtualmachines.kubevirt.io: no controller sets the status of a stub"),
	} {
		r, err := KubeBurner("kb.yml", Options{StubCRDs: stubs})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range r.Remarks {
			if !strings.Contains(m.Text, "labels") { // which the templates in one line cannot get
				got = append(got, m.String())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("stubs %v:\n%s\nwant\n%s", stubs, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		s, err := scenario.Parse("imported.yaml", r.Scenario, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Summary[0], (Row{"job a", "objects", "2 ResourceClaimTemplate, 2 Route, 2 VirtualMachine, 2 of dc.yml", "2 ResourceClaimTemplate, 2 Route, 2 VirtualMachine"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		var defined []string
		for _, c := range s.CustomResources() {
			defined = append(defined, c.Name)
		}
		if want := map[bool]string{false: "", true: "routes.route.openshift.io virtualmachines.kubevirt.io"}[stubs]; strings.Join(defined, " ") != want {
			t.Errorf("the scenario defines %q, want %q", defined, want)
		}
	}
}

// The numbers of the table come from the scenario, so that a wrong number is visible.
func TestSummary(t *testing.T) {
	r := rollout(t, Options{})
	for _, row := range r.Summary {
		if row.Original != row.Scenario {
			t.Errorf("%+v", row)
		}
	}
	d := newDraft(Options{}, "config.yml")
	d.part("job shop").objects["ConfigMap"] = 7
	d.parts[0].to = 1
	s, err := scenario.Parse("imported.yaml", r.Scenario, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.summary(plan.Of(s))[0], (Row{"job shop", "objects", "7 ConfigMap", "6 ConfigMap, 12 Deployment"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The run draws the random texts of a patch for each object and iteration, as kube-burner does. A number is drawn once, with a
// remark, because a patch of a scenario has templates only in texts.
func TestPatchesDrawAgain(t *testing.T) {
	unpack(t, txtar.Parse([]byte(`-- kb.yml --
jobs:
- {name: made, jobIterations: 2, qps: 20, namespace: p, objects: [{objectTemplate: cm.yml}]}
- {name: patched, jobType: patch, jobIterations: 3, qps: 20, objects: [{kind: ConfigMap, apiVersion: v1, labelSelector: {x: y}, patchType: application/merge-patch+json, objectTemplate: patch.yml}]}
-- cm.yml --
apiVersion: v1
kind: ConfigMap
metadata: {name: "cm-{{.Iteration}}", labels: {x: y}}
-- patch.yml --
metadata:
  annotations: {noise: "{{randAlphaNum 64}}", turn: "{{.Iteration}}", id: {{ uuidv4 }}, few: "{{randInt 1 9}}"}
`)))
	r, err := KubeBurner("kb.yml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"noise: '{{randAlphaNum 64}}'", "id: '{{uuidv4}}'", `turn: "2"`} {
		if !strings.Contains(string(r.Scenario), want) {
			t.Errorf("the scenario does not contain %s:\n%s", want, r.Scenario)
		}
	}
	if want := "patch.yml:2: the import evaluated randInt once; all objects have the same value"; len(r.Remarks) != 1 || r.Remarks[0].String() != want {
		t.Errorf("%v, want %s", r.Remarks, want)
	}
}

// A field that API servers drop does not keep the run from creating the object.
func TestUnknownFieldsOfObjects(t *testing.T) {
	unpack(t, txtar.Parse([]byte(`-- kb.yml --
jobs:
- {name: made, qps: 20, namespace: p, objects: [{objectTemplate: block.yml}, {objectTemplate: flow.yml}]}
-- block.yml --
apiVersion: v1
kind: Service
metadata:
  name: a
spec:
  portalIP: ''
  ports:
  - port: 5432
-- flow.yml --
apiVersion: v1
kind: Service
metadata:
  name: b
spec: {ports: [{port: 5432, x: y}]}
`)))
	r, err := KubeBurner("kb.yml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var remarks []string
	for _, m := range r.Remarks {
		remarks = append(remarks, m.String())
	}
	if want := []string{
		"kb.yml:2: jobs[0].objects[0].objectTemplate: the template loses fields that Kubernetes lacks, as the API server would drop them: spec.portalIP",
		"kb.yml:2: jobs[0].objects[1].objectTemplate: the run refuses objects with fields that Kubernetes lacks (remove from the template: spec.ports.[0].x)",
	}; !slices.Equal(remarks, want) {
		t.Errorf("%q, want %q", remarks, want)
	}
	if bytes.Contains(r.Scenario, []byte("portalIP:")) {
		t.Errorf("the field is still there:\n%s", r.Scenario)
	}
}

// Churn in the fields of kube-burner 1 is not lost in silence.
func TestChurnOfKubeBurner1(t *testing.T) {
	unpack(t, txtar.Parse([]byte(`-- kb.yml --
jobs:
- {name: made, qps: 20, jobIterations: 4, namespace: p, churn: true, churnCycles: 2, churnPercent: 50, churnDelay: 5s, objects: [{objectTemplate: cm.yml}]}
-- cm.yml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: "a-{{.Iteration}}"}}
`)))
	r, err := KubeBurner("kb.yml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"churn of job made"}; !slices.Equal(r.Lost, want) || !strings.Contains(fmt.Sprint(r.Remarks), "kb.yml:2: jobs[0].churn: no churn: since version 2, kube-burner reads churnConfig") {
		t.Errorf("lost %q, remarks %v", r.Lost, r.Remarks)
	}
}
