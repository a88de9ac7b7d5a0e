package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	steps = "\nname: x\nnamespace: {number: 1}\ntuningSets: [{name: t, qpsLoad: {qps: 5}}]\nsteps:\n- name: s\n  phases:\n" +
		"  - {namespaceRange: {min: 1, max: 1}, replicasPerNamespace: 2, tuningSet: t, objectBundle: [{basename: b, objectTemplatePath: object.yaml}]}\n"
	jobs   = "\njobs:\n- {name: j, jobIterations: 2, qps: 10, burst: 10, namespace: n, objects: [{objectTemplate: object.yaml, replicas: 1}]}\n"
	object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
)

// An import of files that expand without an end is refused, and says why. Without limits, each of them takes hours or
// several gigabytes.
func TestEndlessImportsAreRefused(t *testing.T) {
	doubled := strings.Repeat(`{{$x = print $x $x}}`, 40)
	modules := map[string]string{"config.yaml": "name: x\nsteps: [{module: {path: m0.yaml}}]\n"}
	for i := range 15 {
		modules[fmt.Sprintf("m%d.yaml", i)] = "steps:\n" + strings.Repeat(fmt.Sprintf("- module: {path: m%d.yaml}\n", i+1), 4)
	}
	modules["m15.yaml"] = "steps: []\n"
	clusterLoader := func(dir string) error { _, err := ClusterLoader2(dir, Options{}); return err }
	kubeBurner := func(dir string) error {
		_, err := KubeBurner(filepath.Join(dir, "config.yaml"), Options{})
		return err
	}
	for name, c := range map[string]struct {
		files map[string]string
		read  func(dir string) error
		want  string
	}{
		"tree of modules":           {modules, clusterLoader, "more than 1000 modules"},
		"loop in a loop":            {map[string]string{"config.yaml": "#{{range Loop 1000000}}{{range Loop 1000000}}{{end}}{{end}}" + steps}, clusterLoader, "iterations"},
		"loop that prints":          {map[string]string{"config.yaml": "#{{range Loop 1000000}}xxxxxxxxxxxxxxxxxxxxxxxx{{end}}" + steps}, clusterLoader, "iterations"},
		"text joined to itself":     {map[string]string{"config.yaml": `#{{$x := "xxxxxxxx"}}` + strings.ReplaceAll(doubled, "print", "Concat") + steps}, clusterLoader, "16 MiB"},
		"wide indentation":          {map[string]string{"config.yaml": `#{{YamlQuote "a\nb" 2000000000}}` + steps}, clusterLoader, "YamlQuote"},
		"loop in a config":          {map[string]string{"config.yaml": "#{{range until 100000}}{{range until 100000}}{{end}}{{end}}" + jobs}, kubeBurner, "iterations"},
		"repeated text":             {map[string]string{"config.yaml": `#{{repeat 2000000000 "xxxxxxxx"}}` + jobs}, kubeBurner, "repeat"},
		"doubled text":              {map[string]string{"config.yaml": `#{{$x := "xxxxxxxx"}}` + doubled + jobs}, kubeBurner, "16 MiB"},
		"long list":                 {map[string]string{"config.yaml": "{{range until 2000000000}}x{{end}}" + jobs}, kubeBurner, "until"},
		"doubled text of an object": {map[string]string{"config.yaml": jobs, "object.yaml": object + `x: {{$x := "xxxxxxxx"}}` + doubled + "\n"}, kubeBurner, "16 MiB"},
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
			if err := c.read(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
		})
	}
}
