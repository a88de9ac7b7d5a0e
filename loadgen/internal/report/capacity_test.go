package report

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// A trial without requests has no rate and no latency of them: 0/s would be a measurement.
func TestCapacityWithoutRequests(t *testing.T) {
	c := result.Capacity{
		Scenario: "capacity-nodes", Answer: "the generator ended first", Field: "nodes.count", From: 100, To: 20000, Unit: "count",
		Trials: []result.Trial{{Number: 1, Load: 2000, Outcome: "good", Cores: map[string]float64{"kube-apiserver-0": 0.94}}},
	}
	var text, page strings.Builder
	if err := Capacity(&text, c, TerminalOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	if err := CapacityHTML(&page, c); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"terminal": text.String(), "page": page.String()} {
		if !strings.Contains(got, "kube-apiserver-0 0.94") || strings.Contains(got, "0/s") || strings.Contains(got, "0 s<") || strings.Contains(got, "  0 s") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
