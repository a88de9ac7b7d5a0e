package run

import (
	"fmt"
	"os"
	"slices"
	"strings"
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
		info, err := describe(plan{o: o, aborts: &aborts{}})
		if err != nil || slices.Contains(info.Warnings, want) != (files == "") || len(info.Warnings) > 1 {
			t.Errorf("with kubeconfig %q: %q, %v", files, info.Warnings, err)
		}
	}
}

// The page on users' clusters says how soon a run ends if its cluster is lost.
func TestPageStatesTheEndOfALostCluster(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/own-cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	end := windUpLimit(true, lostStopTimeout) + windUpLimit(true, lostCleanupTimeout)
	for _, want := range []string{
		fmt.Sprintf("Load stops within %.0f s (%.0f s if connections time out).", cluster.LossWithin(nil).Seconds(), cluster.LossWithin(os.ErrDeadlineExceeded).Seconds()),
		fmt.Sprintf("for %.0f s, then lists the leftovers", end.Seconds()),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
