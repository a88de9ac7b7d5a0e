package scenario

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
)

// TestUpstreamObjects keeps the names that a scenario may not take equal to what API
// servers make themselves.
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
