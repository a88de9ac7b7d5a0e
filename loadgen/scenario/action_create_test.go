package scenario

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
)

// TestUpstreamObjects keeps the names that a scenario may not use equal to the objects that API
// servers create themselves.
func TestUpstreamObjects(t *testing.T) {
	all := map[string][]string{"PriorityClass": {"system-cluster-critical", "system-node-critical"}} // in Kubernetes' own module
	for _, s := range append(slices.Clone(bootstrap.MandatoryFlowSchemas), bootstrap.SuggestedFlowSchemas...) {
		all["FlowSchema"] = append(all["FlowSchema"], s.Name)
	}
	for _, l := range append(slices.Clone(bootstrap.MandatoryPriorityLevelConfigurations), bootstrap.SuggestedPriorityLevelConfigurations...) {
		all["PriorityLevelConfiguration"] = append(all["PriorityLevelConfiguration"], l.Name)
	}
	for _, c := range Creatables() {
		want, got := all[c.Kind], slices.Clone(upstreamObjects[c.Kind])
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, and API servers make %q", c.Kind, got, want)
		}
	}
}

func TestCreatedObjectsAreNumbered(t *testing.T) {
	s, err := Parse("x.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: x
setup:
- {kind: create, count: 2, object: {apiVersion: v1, kind: ResourceQuota, metadata: {name: "q-{i}"}, spec: {hard: {"count/w{i}.x": "{i}"}, scopes: ["{i}"]}}}
phases: [{name: a, for: 1s}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := s.Manifests()[0].Objects()
	if len(all) != 2 {
		t.Fatal(all)
	}
	text, err := json.Marshal(all[1].Object)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q-1"},"spec":{"hard":{"count/w1.x":"1"},"scopes":["1"]}}`
	if all[1].Name != "q-1" || string(text) != want {
		t.Errorf("%s %s", all[1].Name, text)
	}
}
