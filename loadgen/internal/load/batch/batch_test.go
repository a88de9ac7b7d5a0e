package batch

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const shop = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: shop
phases:
  - name: fill
    for: 10s
    load:
      - kind: objects
        rate: 100/s
        iterations: 6
        namespaces: 3
        vars: {size: 4}
        templates:
          - replicas: 3
            text: |
              apiVersion: apps/v1
              kind: Deployment
              metadata: {name: "d-{{.Iteration}}-{{.Replica}}", labels: {app: "{{.JobName}}"}}
              spec: {replicas: {{.Replica}}, template: {spec: {containers: [{name: c, image: "i:{{.size}}"}], tolerations: [{key: a}]}}}
              ---
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "c-{{.Iteration}}-{{.Replica}}"}
              data: {odd: "{{if eq .Replica 2}}two words{{else}}{{.Replica}}{{end}}", token: "{{randAlphaNum 20}}"}
`

// Filling an outline gives the same object as rendering and parsing the template.
func TestBodiesAreTheObjects(t *testing.T) {
	s, err := scenario.Parse("shop.yaml", []byte(shop), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := s.Loads()[0]
	expand := func() *scenario.Objects {
		all, err := s.Expand(scenario.PlacedBatch{Batch: l.Batch(), Name: l.Name, Path: l.Path})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	target := load.Target{
		Config: &rest.Config{Host: "https://127.0.0.1:1"}, Namespaces: []string{"run", "run-1", "run-2"}, Labels: map[string]string{"run": "r1"},
		NodeSelector: map[string]string{"run": "r1"}, Tolerations: []corev1.Toleration{{Key: "simulated", Operator: corev1.TolerationOpExists}},
	}
	o, err := newOperation(target, expand())
	if err != nil {
		t.Fatal(err)
	}
	o.resources = []objects.Resource{
		{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespaced: true},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true},
	}
	reference := expand()
	outlined := 0
	for n := range reference.Len() {
		var one rendered
		if err := o.render(&one); err != nil {
			t.Fatal(err)
		}
		want, err := reference.At(n)
		if err != nil {
			t.Fatal(err)
		}
		o.options.Complete(want, true)
		text, err := json.Marshal(want.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if json.Unmarshal(one.body, &got) != nil || json.Unmarshal(text, &wanted) != nil || !reflect.DeepEqual(got, wanted) {
			t.Errorf("object %d =\n%s\nwant\n%s", n, one.body, text)
		}
		if _, _, ok, _ := o.objects.Slots(n); ok {
			outlined++
		}
	}
	if outlined != 24 { // all except replica 2, whose text has another shape
		t.Errorf("%d of %d objects used outlines", outlined, reference.Len())
	}
}

// {{.Namespace}} is the name of the namespace that the object goes into.
func TestNamespaceInTemplates(t *testing.T) {
	s, err := scenario.Parse("shop.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: shop
phases:
  - name: fill
    for: 10s
    load:
      - kind: objects
        rate: 100/s
        namespaces: 2
        templates:
          - text: |
              apiVersion: rbac.authorization.k8s.io/v1
              kind: RoleBinding
              metadata: {name: "b-{{.Iteration}}"}
              roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}
              subjects: [{kind: ServiceAccount, name: default, namespace: {{.Namespace}}}, {kind: User, name: "of:{{.Namespace}}:all"}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := s.Loads()[0]
	all, err := s.Expand(scenario.PlacedBatch{Batch: l.Batch(), Name: l.Name, Path: l.Path})
	if err != nil {
		t.Fatal(err)
	}
	o, err := newOperation(load.Target{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Namespaces: []string{"run", "run-1"}}, all)
	if err != nil {
		t.Fatal(err)
	}
	o.resources = []objects.Resource{{GroupVersionResource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, Namespaced: true}}
	for _, namespace := range []string{"run", "run-1"} {
		var one rendered
		if err := o.render(&one); err != nil {
			t.Fatal(err)
		}
		var got rbacv1.RoleBinding
		if err := json.Unmarshal(one.body, &got); err != nil {
			t.Fatal(err)
		}
		if got.Namespace != namespace || got.Subjects[0].Namespace != namespace || got.Subjects[1].Name != "of:"+namespace+":all" {
			t.Errorf("in %s: %s", namespace, one.body)
		}
	}
}
