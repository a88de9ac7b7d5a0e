package scenario

import (
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
