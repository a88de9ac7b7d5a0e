package plan

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/condition"
	"github.com/stormglass/stormglass/loadgen/scenario"
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

func TestConditionsOfAScenario(t *testing.T) {
	s, err := scenario.Parse("waits.yaml", []byte(oneDeploy+"{resource: pods, selector: app=web, condition: Ready, count: 2}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := Of(s)
	all := p.Conditions
	if all["p"] == nil {
		t.Fatal(all)
	}
	if sets := p.Followed; len(sets) != 1 || sets[0].Resource != "pods" {
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

// A recorded run can be judged again even if newer checks would refuse its scenario.
func TestPlanOfARecordedScenarioIsNotChecked(t *testing.T) {
	for name, body := range map[string]string{
		"a condition that holds at once": "nodes: {count: 3}\nphases: [{name: a, until: nodesReady, within: 1m}]",
		"leases that are late":           "nodes: {count: 3, leaseRenew: 70s}\nphases: [{name: a, for: 30s}]",
	} {
		text := []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: old\n" + body + "\n")
		s, err := scenario.Parse("old.yaml", text, nil)
		if err != nil || Of(s).Check() == nil {
			t.Errorf("%s: Parse returns %v, Check no error", name, err)
		}
		if s, err = scenario.ParseRecorded("old.yaml", text); err != nil || Of(s).Check() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
