package generator

import (
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// LoadSaturation reports late requests with their real reason. It blames the rate only if this process used a processor
// for it.
func TestLateRequestsHaveTheirTrueReason(t *testing.T) {
	for what, c := range map[string]struct {
		machine *result.Machine
		stalled float64
		want    string
	}{
		"5 requests/s next to two busy loops": {&result.Machine{Processors: 2, BusySeconds: 20, OwnSeconds: 2, GeneratorSeconds: 0.5}, 3,
			"the machine was busy (other programs used 1.8 of 2 processors; loadgen used 0.05 of 2 processors)"},
		"steal":              {&result.Machine{Processors: 2, BusySeconds: 5, OwnSeconds: 5, StealSeconds: 4, GeneratorSeconds: 0.5}, 0, "the machine was busy (the hypervisor took 20%"},
		"stopped":            {&result.Machine{Processors: 2, BusySeconds: 3, OwnSeconds: 3, GeneratorSeconds: 0.5}, 8, "loadgen was stopped or got no CPU for 8.0 s (it used 0.05"},
		"the plane":          {&result.Machine{Processors: 2, BusySeconds: 19.5, OwnSeconds: 19.5, GeneratorSeconds: 2}, 3, "loadgen and the control plane together used all 2 processors, and loadgen got only 0.20 of them"},
		"the rate":           {&result.Machine{Processors: 2, BusySeconds: 18, OwnSeconds: 18, GeneratorSeconds: 9}, 0, "the rate is too high for this machine (loadgen used 0.90 of 2 processors)"},
		"nothing known":      {nil, 0, "loadgen had too little CPU for the rate"},
		"nothing stands out": {&result.Machine{Processors: 2, BusySeconds: 3, OwnSeconds: 3, GeneratorSeconds: 0.5}, 0, "loadgen was stopped or had too little CPU (it used 0.05"},
	} {
		start := time.Unix(1000, 0)
		p := result.Phase{
			Name: "p", Start: start, End: start.Add(10 * time.Second), Machine: c.machine, StalledSeconds: c.stalled,
			Requests: []result.Requests{{Load: "get", Verb: "get", Lag: result.Latency{Count: 200, P99: 0.5}}},
		}
		lines := LoadSaturation(p)
		if len(lines) != 1 || !strings.Contains(lines[0], "(p99; limit 100 ms), because "+c.want) {
			t.Errorf("%s: %q", what, lines)
		}
		if what != "the rate" && strings.Contains(lines[0], "rate is too high") {
			t.Errorf("%s: the line blames the rate: %q", what, lines)
		}
	}
}
