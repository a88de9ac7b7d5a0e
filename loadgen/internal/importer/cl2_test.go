package importer

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
)

// For each replica, the template of a load renders the same objects as ClusterLoader2 for the index.
func TestObjectsAreThoseOfClusterLoader(t *testing.T) {
	for name, text := range map[string]string{
		"plain":    "kind: A\nmetadata: {name: \"{{.Name}}\"}\nn: {{MultiplyInt 2 (AddInt .Index 1)}}\nm: {{MaxInt .Index 3}}\np: '{{printf \"%s-%d\" .BaseName .Index}}'\n",
		"decides":  "kind: A\nmetadata: {name: \"{{.Name}}\"}\n{{if and (ge .Index 2) (not (eq (Mod .Index 3) 0))}}\nx: {{.Index}}\n{{else}}\ny: {{DefaultParam .No \"z\"}}\n{{end}}\n",
		"repeats":  "kind: A\nmetadata: {name: \"{{.Name}}\"}\nlist:\n{{range $i := Loop (Mod .Index 2)}}\n- {{$i}}\n{{end}}\n- end\n",
		"includes": "kind: A\nmetadata: {name: \"{{.Name}}\"}\ntext: {{YamlQuote (IncludeFile \"/part.txt\") 1}}\n",
	} {
		templates := cl2Templates{fstest.MapFS{"a.yaml": {Data: []byte(text)}, "part.txt": {Data: []byte("one\ntwo\n")}}, bounds.NewBounds()}
		for _, first := range []int{0, 1, 5} {
			const replicas = 8
			ours, err := templates.object("/a.yaml", "base", first, replicas, map[string]any{})
			if err != nil {
				t.Errorf("%s from %d: %v", name, first, err)
				continue
			}
			for i := first; i < first+replicas; i++ {
				theirs, _, err := templates.render("a.yaml", map[string]any{"Name": "base-" + strconv.Itoa(i), "BaseName": "base", "Index": i})
				if err != nil {
					t.Fatal(err)
				}
				want, err := render(bounds.NewBounds(), theirs, nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := render(bounds.NewBounds(), ours, map[string]any{"Replica": i - first + 1})
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s, index %d: %v %v\nwant %v, of\n%s", name, i, got, err, want, ours)
				}
			}
		}
	}
}

// Random values of a test are drawn for each object, and no condition may depend on them.
func TestDrawsOfClusterLoader(t *testing.T) {
	templates := cl2Templates{fstest.MapFS{
		"draws.yaml":   {Data: []byte("kind: A\nn: {{RandIntRange 3 5}}\nsame: {{RandIntRange 4 4}}\ntext: {{RandData 6}}\n")},
		"decides.yaml": {Data: []byte("kind: A\n{{if gt (RandInt 5) 2}}\nn: 1\n{{end}}\n")},
	}, bounds.NewBounds()}
	got, err := templates.object("draws.yaml", "a", 0, 2, nil)
	if want := "kind: A\nn: {{randInt 3 6}}\nsame: 4\ntext: {{randAlphaNum 6}}\n"; err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := templates.object("decides.yaml", "a", 0, 2, nil); err == nil {
		t.Error("a decision by a draw is carried over")
	}
}

// A wait for updated pods does not end before the controller has seen the change and has replaced the pods.
func TestWaitsForUpdatedPods(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "d.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{.Name}}, labels: {group: g}}\n"))
	for _, updated := range []bool{true, false} {
		write(t, "config.yaml", fmt.Appendf(nil, `name: x
namespace: {number: 1}
tuningSets: [{name: q, qpsLoad: {qps: 10}}]
steps:
- measurements: [{Identifier: W, Method: WaitForControlledPodsRunning, Params: {action: start, checkIfPodsAreUpdated: %v, apiVersion: apps/v1, kind: Deployment, labelSelector: group = g}}]
- phases: [{namespaceRange: {min: 1, max: 1}, replicasPerNamespace: 1, tuningSet: q, objectBundle: [{basename: d, objectTemplatePath: d.yaml}]}]
- measurements: [{Identifier: W, Method: WaitForControlledPodsRunning, Params: {action: gather}}]
`, updated))
		r, err := ClusterLoader2("config.yaml", Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"o.status.observedGeneration == o.metadata.generation", "o.status.updatedReplicas == o.spec.replicas"} {
			if strings.Contains(string(r.Scenario), part) != updated {
				t.Errorf("checkIfPodsAreUpdated %v: %s in\n%s", updated, part, r.Scenario)
			}
		}
	}
}
