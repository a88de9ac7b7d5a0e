package run

import (
	"slices"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

// Only the user's cluster knows whether it serves a custom resource.
func TestUnservedResourcesWarnOnABundledPlane(t *testing.T) {
	o := Options{Scenario: parse(t, "phases: [{name: a, for: 10s, load: [{kind: requests, verb: list, resource: databases.example.com, rate: 1/s}]}]\n")}
	const want = "mine.yaml:4: phases.a.load[0].resource: a bundled control plane does not serve databases.example.com " +
		"(create its CustomResourceDefinition in setup or objects, or run with --kubeconfig on a cluster that serves it)"
	for _, files := range []string{"", "theirs.kubeconfig"} {
		o.Kubeconfig = cluster.Kubeconfig{Files: files}
		info, err := describe(o)
		if err != nil || slices.Contains(info.Warnings, want) != (files == "") || len(info.Warnings) > 1 {
			t.Errorf("with kubeconfig %q: %q, %v", files, info.Warnings, err)
		}
	}
}
