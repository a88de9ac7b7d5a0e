package run

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

// On a bundled control plane, a custom resource that nothing defines causes a warning. On a user's cluster it does not,
// because only the cluster knows its custom resources.
func TestUnservedResourcesWarnOnABundledPlane(t *testing.T) {
	o := Options{Scenario: parse(t, "phases: [{name: a, for: 10s, load: [{kind: requests, verb: list, resource: databases.example.com, rate: 1/s}]}]\n")}
	const want = "mine.yaml:4: phases.a.load[0].resource: a bundled control plane does not serve databases.example.com " +
		"(create its CustomResourceDefinition in setup or objects, or run with --kubeconfig on a cluster that serves it)"
	for _, files := range []string{"", "theirs.kubeconfig"} {
		o.Kubeconfig = cluster.Kubeconfig{Files: files}
		info, err := describe(compiled{o: o, plan: plan.Of(o.Scenario), aborts: &aborts{}})
		if err != nil || slices.Contains(info.Warnings, want) != (files == "") || len(info.Warnings) > 1 {
			t.Errorf("with kubeconfig %q: warnings %q, error %v", files, info.Warnings, err)
		}
	}
}

// A run records its labels, and refuses labels that run.json cannot contain.
func TestRunRecordsItsLabels(t *testing.T) {
	o := Options{Scenario: parse(t, "phases: [{name: a, for: 10s}]\n"), Labels: map[string]string{"team": "core"}}
	info, err := describe(compiled{o: o, plan: plan.Of(o.Scenario), aborts: &aborts{}})
	if err != nil || info.Labels["team"] != "core" || o.checkLabels() != nil {
		t.Errorf("labels %v, error %v", info.Labels, err)
	}
	o.Labels["a b"] = "c"
	if err := o.checkLabels(); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("checkLabels accepts an invalid name: %v", err)
	}
}

// docs/how-to/own-cluster.md states how soon a run ends after it has lost its cluster.
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
			t.Errorf("the page lacks %q", want)
		}
	}
}
