package scenario

import (
	"slices"
	"strings"
	"testing"
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
	s, err := Parse("x.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"x.yaml:5: setup: 1 CRD is a stub (no validation, no controllers): routes.example.com (the load on them reaches only API servers and etcd)",
		"x.yaml:20: phases.a.load.l.templates: a bundled control plane does not serve ResourceClaimTemplate of resource.k8s.io/v1beta1 (write apiVersion: resource.k8s.io/v1, or set controlPlane.apiServer.flags.runtime-config: resource.k8s.io/v1beta1=true)",
		"x.yaml:20: phases.a.load.l.templates: a bundled control plane does not serve PodGroup of scheduling.k8s.io/v1beta1 (set controlPlane.apiServer.flags.runtime-config: scheduling.k8s.io/v1beta1=true)",
	}
	if got := append(s.Warnings(), s.Unserved()...); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
