package objects

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/restmapper"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// missing leaves out existing objects, because the rate of the action limits requests.
func TestMissingObjectsAreThoseThatAreNotThere(t *testing.T) {
	s, err := scenario.Parse("maps.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: maps
phases:
  - name: again
    for: 1s
    actions:
      - {kind: create, onlyMissing: true, namespaces: 2, iterations: 2, templates: [{replicas: 3, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "m-{{.Replica}}"}}}]}
gates: [{name: one, objective: phase-duration, max: 1m}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Expand(s.Batches()[0])
	if err != nil {
		t.Fatal(err)
	}
	served := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}},
	}}}}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(served))
	m := &making{Objects: &Objects{options: Options{Namespaces: []string{"a", "b"}}, mapper: mapper}, all: all}
	for _, c := range []struct {
		present map[string]bool
		want    []int
	}{
		{nil, []int{0, 1, 2, 3, 4, 5}},
		{map[string]bool{}, []int{0, 1, 2, 3, 4, 5}},
		{map[string]bool{"/api/v1/namespaces/a/configmaps/m-1": true, "/api/v1/namespaces/b/configmaps/m-3": true}, []int{1, 2, 3, 4}},
	} {
		m.present = c.present
		got, err := m.missing(false)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("with the present objects %v, missing = %v (%v), want %v", c.present, got, err, c.want)
		}
	}
}
