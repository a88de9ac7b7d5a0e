package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
)

const (
	steps = "\nname: x\nnamespace: {number: 1}\ntuningSets: [{name: t, qpsLoad: {qps: 5}}]\nsteps:\n- name: s\n  phases:\n" +
		"  - {namespaceRange: {min: 1, max: 1}, replicasPerNamespace: 2, tuningSet: t, objectBundle: [{basename: b, objectTemplatePath: object.yaml}]}\n"
	jobs   = "\njobs:\n- {name: j, jobIterations: 2, qps: 10, burst: 10, namespace: n, objects: [{objectTemplate: object.yaml, replicas: 1}]}\n"
	object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
)

// Imports of files that expand without end are refused with the reason. Without limits, each of these imports takes
// hours or several gigabytes.
func TestEndlessImportsAreRefused(t *testing.T) {
	doubled := strings.Repeat(`{{$x = print $x $x}}`, 40)
	modules := map[string]string{"config.yaml": "name: x\nsteps: [{module: {path: m0.yaml}}]\n"}
	for i := range 15 {
		modules[fmt.Sprintf("m%d.yaml", i)] = "steps:\n" + strings.Repeat(fmt.Sprintf("- module: {path: m%d.yaml}\n", i+1), 4)
	}
	modules["m15.yaml"] = "steps: []\n"
	clusterLoader := func(dir string) error { _, err := ClusterLoader2(dir, Options{}); return err }
	kwok := func(dir string) error {
		_, err := Kwok([]string{filepath.Join(dir, "config.yaml")}, Options{})
		return err
	}
	kubeBurner := func(dir string) error {
		_, err := KubeBurner(filepath.Join(dir, "config.yaml"), Options{})
		return err
	}
	for name, c := range map[string]struct {
		files map[string]string
		read  func(dir string) error
		want  string
	}{
		"tree of modules":       {modules, clusterLoader, "more than 1000 modules"},
		"loop in a loop":        {map[string]string{"config.yaml": "#{{range Loop 1000000}}{{range Loop 1000000}}{{end}}{{end}}" + steps}, clusterLoader, "iterations"},
		"loop over an index":    {map[string]string{"config.yaml": steps, "object.yaml": object + "x: \"{{range $i := AddInt .Index 2000000}}{{end}}\"\n"}, clusterLoader, "iterations"},
		"loop that prints":      {map[string]string{"config.yaml": "#{{range Loop 1000000}}xxxxxxxxxxxxxxxxxxxxxxxx{{end}}" + steps}, clusterLoader, "iterations"},
		"text joined to itself": {map[string]string{"config.yaml": `#{{$x := "xxxxxxxx"}}` + strings.ReplaceAll(doubled, "print", "Concat") + steps}, clusterLoader, "16 MiB"},
		"texts joined at once":  {map[string]string{"config.yaml": `#{{$x := "xxxxxxxx"}}` + strings.Repeat(`{{$x = Concat $x $x}}`, 20) + `{{len (Concat` + strings.Repeat(" $x", 20) + `)}}` + steps}, clusterLoader, "the arguments of a function are too large"},
		"wide indentation":      {map[string]string{"config.yaml": `#{{YamlQuote "a\nb" 2000000000}}` + steps}, clusterLoader, "YamlQuote"},
		"loop in a config":      {map[string]string{"config.yaml": "#{{range until 100000}}{{range until 100000}}{{end}}{{end}}" + jobs}, kubeBurner, "iterations"},
		"repeated text":         {map[string]string{"config.yaml": `#{{repeat 2000000000 "xxxxxxxx"}}` + jobs}, kubeBurner, "repeat"},
		"doubled text":          {map[string]string{"config.yaml": `#{{$x := "xxxxxxxx"}}` + doubled + jobs}, kubeBurner, "16 MiB"},
		"long list":             {map[string]string{"config.yaml": "{{range until 2000000000}}x{{end}}" + jobs}, kubeBurner, "until"},
		"list of an object":     {map[string]string{"config.yaml": jobs, "object.yaml": object + `x: "{{$l := list 1}}{{range until 30}}{{$l = concat $l $l}}{{end}}{{len $l}}"` + "\n"}, kubeBurner, "1000000 elements"},
		"text of each index": {map[string]string{
			"config.yaml": strings.Replace(steps, "replicasPerNamespace: 2", "replicasPerNamespace: 30", 1), "object.yaml": object + "x: \"{{range Loop .Index}}x{{end}}\"\n",
		}, clusterLoader, "more than 20 variants"},
		"aliases of a test": {map[string]string{
			"config.yaml": "a: &a {basename: b, objectTemplatePath: object.yaml}\nb: &b {replicasPerNamespace: 2, objectBundle: [" + strings.Repeat("*a, ", 100) + "]}\n" +
				"c: &c {name: s, phases: [" + strings.Repeat("*b, ", 100) + "]}\nsteps: [" + strings.Repeat("*c, ", 100) + "]\n",
		}, clusterLoader, "more than 100000 values"},
		"aliases of jobs": {map[string]string{
			"config.yaml": "a: &a {objectTemplate: object.yaml, replicas: 1}\nb: &b {name: j, jobIterations: 1, objects: [" + strings.Repeat("*a, ", 1000) + "]}\njobs: [" + strings.Repeat("*b, ", 1000) + "]\n",
		}, kubeBurner, "more than 100000 values"},
		"aliases of a Stage": {map[string]string{
			"config.yaml": "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\na: &a [" + strings.Repeat("1, ", 1000) + "]\nspec: [" + strings.Repeat("*a, ", 1000) + "]\n",
		}, kwok, "more than 100000 values"},
		"alias of itself":           {map[string]string{"config.yaml": "jobs: &a [*a]\n"}, kubeBurner, "more than 100000 values"},
		"doubled text of an object": {map[string]string{"config.yaml": jobs, "object.yaml": object + `x: {{$x := "xxxxxxxx"}}` + doubled + "\n"}, kubeBurner, "16 MiB"},
		"modules of many values": {map[string]string{
			"config.yaml": "steps: [{module: {path: m.yaml}}, {module: {path: m.yaml}}]\n", "m.yaml": "x: [" + strings.Repeat("1, ", 60_000) + "]\nsteps: []\n",
		}, clusterLoader, "more than 100000 values"},
		"modules of many bytes": {map[string]string{
			"config.yaml": "steps: [{module: {path: m.yaml}}, {module: {path: m.yaml}}]\n", "m.yaml": "#" + strings.Repeat("x", 3<<20) + "\nsteps: []\n",
		}, clusterLoader, "more than 4 MiB"},
		// To find the line of the error, the import would have to compare each line with all lines of the file.
		"lines of a loop": {map[string]string{
			"config.yaml": "#{{range until 2000}}\n#{{.}}{{end}}\n" + strings.Repeat("#"+strings.Repeat("x", 1000)+"\n", 1000) + "jobs: 5\n",
		}, kubeBurner, "config.yaml: jobs: must be a list"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.files["object.yaml"] == "" {
				c.files["object.yaml"] = object
			}
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.read(dir); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "stormglass") {
				t.Errorf("%v, want one line with %q", err, c.want)
			}
		})
	}
}

// One time limit holds for all files and templates of an import. If the time is over, the import fails instead of
// leaving out parts.
func TestTimeOfAnImportIsBounded(t *testing.T) {
	dir := t.TempDir()
	test, config := filepath.Join(dir, "test.yaml"), filepath.Join(dir, "jobs.yaml")
	for file, text := range map[string]string{test: steps, config: jobs, filepath.Join(dir, "object.yaml"): object} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	over := new(bounds.Bounds)
	for name, do := range map[string]func() error{
		"ClusterLoader2": func() error { _, err := ClusterLoader2(test, Options{limits: over}); return err },
		"kube-burner":    func() error { _, err := KubeBurner(config, Options{limits: over}); return err },
		"a file":         func() error { _, err := renderConfig(over, config, []byte(jobs), nil); return err },
		"an object":      func() error { _, err := render(over, object, nil); return err },
		"the result":     func() error { _, err := newDraft(Options{limits: over}, config).finish(); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "takes longer than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An import reports only the first errors of a file.
func TestErrorsOfAnImportAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("jobs: ["+strings.Repeat("1, ", 1000)+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := KubeBurner(file, Options{})
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != maxErrors+1 || !strings.Contains(lines[maxErrors], "more than 100 errors") {
		t.Errorf("%d errors; the last is %s", len(lines), lines[len(lines)-1])
	}
}
