package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A bundled control plane does not serve alpha and beta versions by default, and the scenario names the stubs that it defines.
func TestWarningsOfVersionsAndStubs(t *testing.T) {
	const text = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: x
controlPlane: {apiServer: {flags: {runtime-config: certificates.k8s.io/v1beta1=true}}}
setup:
  - kind: create
    object:
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: routes.example.com, annotations: {stormglass.dev/stub: "true"}}
      spec: {group: example.com, scope: Namespaced, names: {plural: routes, kind: Route}, versions: [{name: v1, served: true, storage: true}]}
phases:
  - name: a
    until: objectsMade
    within: 1m
    load:
      - name: l
        kind: objects
        rate: 1/s
        templates:
          - text: "{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaimTemplate, metadata: {name: a}}"
          - text: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: a}}"
          - text: "{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {name: a}}"
          - text: "{apiVersion: example.com/v1, kind: Route, metadata: {name: a}}"
`
	s, err := scenario.Parse("x.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"x.yaml:5: setup: 1 CRD is a stub (no validation, no controllers): routes.example.com (the load on them reaches only API servers and etcd)",
		"x.yaml:20: phases.a.load.l.templates: a bundled control plane does not serve ResourceClaimTemplate of resource.k8s.io/v1beta1 (write apiVersion: resource.k8s.io/v1, or set controlPlane.apiServer.flags.runtime-config: resource.k8s.io/v1beta1=true)",
		"x.yaml:20: phases.a.load.l.templates: a bundled control plane does not serve PodGroup of scheduling.k8s.io/v1beta1 (set controlPlane.apiServer.flags.runtime-config: scheduling.k8s.io/v1beta1=true)",
	}
	if got := append(Of(s).Warnings(), Of(s).Unserved()...); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
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
	s, err := scenario.Parse("waits.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []scenario.CustomResource{
		{Name: "as.example.com", Kind: "A", Namespaced: false, Early: true}, {Name: "bs.example.com", Kind: "B", Namespaced: true, Early: true},
		{Name: "cs.example.com", Kind: "C", Namespaced: false, Early: true}, {Name: "ds.example.com", Kind: "D", Namespaced: true, Early: false},
	}
	if got := Of(s).Defined; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	const unserved = "waits.yaml:11: transitions.ready: a bundled control plane does not serve es.example.com (create its CustomResourceDefinition in setup, " +
		"in objects or by an action, or run with --kubeconfig on a cluster that serves it)"
	if got := Of(s).Unserved(); !slices.Equal(got, []string{unserved}) {
		t.Errorf("%q, want %q", got, unserved)
	}
}

func TestReplayOfAnotherLengthThanItsRecordingIsWarnedOf(t *testing.T) {
	for set, want := range map[string]string{
		"phases.a.for=20s": "",
		"phases.a.for=10s": "only the first 50% of the recording is replayed, because the load ends after 10s (to replay the whole recording, make the phase 21s long)",
		"phases.a.for=60s": "the recording ends after 20s, but the load ends only after 1m (make the phase shorter)",
	} {
		text := "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: again\nphases: [{name: a, for: 10s, load: [{kind: replay, recording: x}]}]\n"
		s, err := scenario.Parse("again.yaml", []byte(text), []string{set})
		if err != nil {
			t.Fatal(err)
		}
		s.Phases[0].Load[0].Recorded = &recording.Recording{Entries: []recording.Entry{{At: 0}, {At: 20e6}}}
		if got := strings.Join(Of(s).Warnings(), "\n"); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", set, got, want)
		}
	}
}
