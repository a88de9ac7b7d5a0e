package plan

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestScenarioMayDefineAResource(t *testing.T) {
	const action = `
phases:
- {name: calm, for: 1s}
- name: applied
  for: 1s
  actions:
  - kind: create
    object: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: things, kind: Thing}, versions: [{name: v1, served: true, storage: true}]}}
`
	for name, c := range map[string]struct {
		text, resource string
		want           bool
	}{
		"an action defines it":               {action, "things.example.com", true},
		"an action defines another":          {action, "others.example.com", false},
		"a hook may":                         {"\nphases: [{name: p, for: 1s, before: [{run: [kubectl, apply]}]}]", "others.example.com", true},
		"a hook does not define Kubernetes'": {"\nphases: [{name: p, for: 1s, before: [{run: [kubectl, apply]}]}]", "lease.coordination.k8s.io", false},
		"an unknown word":                    {"\nphases: [{name: p, for: 1s, before: [{run: [kubectl, apply]}]}]", "deployment.apps", false},
		"nothing":                            {"\nphases: [{name: p, for: 1s}]", "things.example.com", false},
	} {
		s, err := scenario.Parse("mine", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: mine"+c.text), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := Of(s).MayDefine(c.resource); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
