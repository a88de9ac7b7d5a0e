package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

const oneDeploy = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: waits
nodes: {count: 2}
phases:
  - name: p
    within: 5m
    actions: [{kind: deploy, name: web, replicas: 10}]
    until: `

// A condition reads the same after a run writes it.
func TestUntilIsWrittenAsItWasRead(t *testing.T) {
	for text, want := range map[string]string{
		"podsReady": "podsReady",
		`count(pods where status.phase == "Running") >= 10`:                                                 `count(pods where status.phase == "Running") >= 10`,
		"{resource: deployments.apps, name: web, condition: Available}":                                     "deployments.apps web condition=Available",
		"{resource: pods, selector: app=web, count: 5, jsonpath: '{.status.phase}=Running'}":                "pods app=web count 5 jsonpath={.status.phase}=Running",
		"{resource: leases.coordination.k8s.io, namespace: kube-system, cel: has(object.spec), count: all}": "leases.coordination.k8s.io in kube-system cel=has(object.spec)",
	} {
		s, err := Parse("waits.yaml", []byte(oneDeploy+text+"\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := s.Phases[0].Until.String(); got != want {
			t.Errorf("%s reads as %q, want %q", text, got, want)
		}
		resolved, err := s.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("waits.yaml", resolved, nil)
		if err != nil || again.Phases[0].Until != s.Phases[0].Until {
			t.Errorf("%s: read again %+v, %v", text, again.Phases[0].Until, err)
		}
	}
}

func TestUntilByOverride(t *testing.T) {
	s, err := Parse("waits.yaml", []byte(oneDeploy+"podsReady\n"), []string{"phases.p.until={resource: pods, condition: Ready, count: 10}"})
	if err != nil || s.Phases[0].Until.Count != "10" || s.Phases[0].Until.Text != "" {
		t.Errorf("%+v, %v", s.Phases[0].Until, err)
	}
}

func TestConditionsOfAScenario(t *testing.T) {
	s, err := Parse("waits.yaml", []byte(oneDeploy+"{resource: pods, selector: app=web, condition: Ready, count: 2}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Conditions()
	if err != nil || all["p"] == nil {
		t.Fatal(all, err)
	}
	if sets := s.Followed(); len(sets) != 1 || sets[0].Resource != "pods" {
		t.Errorf("followed: %v", sets)
	}
	counter := condition.NewCounter(all["p"].Counts)
	for i, app := range []string{"web", "db", "web"} {
		counter.Put(string(rune('a'+i)), condition.Object{
			"metadata": map[string]any{"labels": map[string]any{"app": app}},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		})
		if holds, err := all["p"].Holds([]condition.Tally{counter.Tally(0)}); holds != (i == 2) || err != nil {
			t.Errorf("after %d pods: %v, %v", i+1, holds, err)
		}
	}
}

func TestTransitionsByName(t *testing.T) {
	text := oneDeploy + "podsReady\ntransitions:\n"
	for name := range knownTransitions() {
		text += "  - name: " + name + "\n"
	}
	s, err := Parse("waits.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range s.Transitions {
		set, _, from, to, err := x.Compile()
		if err != nil || set.Resource == "" || from.Kind != condition.Created || to.Text == "" {
			t.Errorf("%s: %v %+v %+v %v", x.Name, set, from, to, err)
		}
		if !strings.Contains(x.Name, "-") {
			t.Errorf("%q", x.Name)
		}
	}
}

// A custom resource counts as defined by the run, wherever in the scenario its definition is made.
func TestCustomResourcesOfAScenario(t *testing.T) {
	const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAME.example.com}, spec: {group: example.com, scope: SCOPE, names: {kind: KIND, plural: NAME}}}`
	define := func(name, kind, scope string) string {
		return strings.NewReplacer("NAME", name, "KIND", kind, "SCOPE", scope).Replace(definition)
	}
	text := `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: waits
setup: [{kind: create, object: ` + define("as", "A", "Cluster") + `}]
objects:
  - templates: [{object: ` + define("bs", "B", "Namespaced") + `}, {object: ` + define("cs", "C", "Cluster") + `}]
phases:
  - {name: p, for: 1s, actions: [{kind: create, templates: [{object: ` + define("ds", "D", "Namespaced") + `}]}]}
  - {name: q, until: {resource: bs.example.com, condition: Ready}, within: 1m}
transitions: [{name: ready, resource: es.example.com, to: condition=Ready}, {name: later, resource: ds.example.com, to: condition=Ready}]
`
	s, err := Parse("waits.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []CustomResource{
		{"as.example.com", "A", false, true}, {"bs.example.com", "B", true, true},
		{"cs.example.com", "C", false, true}, {"ds.example.com", "D", true, false},
	}
	if got := s.CustomResources(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	const unserved = "waits.yaml:11: transitions.ready: a bundled control plane does not serve es.example.com (create its CustomResourceDefinition in setup, " +
		"in objects or by an action, or run with --kubeconfig on a cluster that serves it)"
	if got := s.Unserved(); !slices.Equal(got, []string{unserved}) {
		t.Errorf("%q, want %q", got, unserved)
	}
}
