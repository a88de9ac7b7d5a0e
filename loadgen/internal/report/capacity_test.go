package report

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// A trial without requests has no request rate and no latency: 0/s would be a measurement.
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

// A capacity between two whole numbers is rounded down. The report says if the bottleneck was used as much in a good trial.
func TestCapacityInWords(t *testing.T) {
	low, median, high, held := 3.1, 3.6, 3.9, 3.0
	c := result.Capacity{
		Answer: "found", Field: "nodes.count", From: 1, To: 10, Unit: "count", Low: &low, Median: &median, High: &high, Held: &held,
		Confirmed: &result.Confirmed{Load: 3, Good: 3, Trials: 4}, GaveWay: []result.GaveWay{{Gate: "ready", Trials: 2}},
		Bottleneck: &result.Bottleneck{Use: result.Use{What: "open files", Component: "etcd-0", Share: 0.9}, Trials: 2, FullWhenLight: true},
		Trials:     []result.Trial{{Number: 1, Load: 3, Outcome: "good"}, {Number: 2, Load: 4, Outcome: "bad"}},
	}
	var text strings.Builder
	if err := Capacity(&text, c, TerminalOptions{Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 of nodes.count (90% interval: 3 to 3)", "confirmation: at 3 all gates passed in 3 of 4 trials", "highest load at which all gates passed: 3", "90% in use in 2 bad trials, but also in the good trial at the lowest load"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
}
