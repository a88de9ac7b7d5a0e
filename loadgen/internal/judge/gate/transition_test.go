package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// withTransitions parses the base scenario with two transitions and a gate.
func withTransitions(t *testing.T, gate string) *scenario.Scenario {
	t.Helper()
	text := strings.Replace(base, "gates:", "transitions: [{name: pod-ready}, {name: job-complete}]\ngates:", 1)
	s, err := scenario.Parse("lab.yaml", []byte(text+"  - {name: g, "+gate+"}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// passed returns the measurements of a run with transitions, in which open objects are still open in the storm.
func passed(open int64) result.Measurements {
	m := told()
	finished := result.Transition{Name: "pod-ready", To: "ready", Began: 1000, Latency: lat(1000, 0.5, 2, 3), External: lat(1000, 0.5, 2, 3)}
	m.Phases[0].Transitions = []result.Transition{finished}
	storm := result.Transition{
		Name: "pod-ready", To: "ready", Began: 500 + open, Gone: 0, Open: open,
		Latency: lat(500+open, 0.7, 4, 6), External: lat(500+open, 0.6, 3.5, 6),
	}
	if open > 0 {
		storm.Latency.Clamped, storm.External.Clamped = open, open
		storm.SoFar, storm.ExternalSoFar = new(lat(500+open, 0.7, 3.8, 6)), new(lat(500+open, 0.6, 3.4, 6))
		storm.SoFar.Max, storm.ExternalSoFar.Max = 30, 29
	}
	m.Phases[1].Transitions = []result.Transition{storm}
	return m
}

func TestTransitionObjectives(t *testing.T) {
	for _, c := range []struct {
		gateCase
		open int64
	}{
		{gateCase{"objective: transition-latency, transition: pod-ready, max: 5s", result.Pass, 4, "worst of 2 values: storm: 500 objects"}, 0},
		{gateCase{"objective: transition-latency, transition: pod-ready, max: 3s", result.Fail, 4, "storm"}, 0},
		{gateCase{"objective: transition-latency, transition: pod-ready, quantile: 0.5, max: 600ms, over: [calm]", result.Pass, 0.5, "calm"}, 0},
		{gateCase{"objective: transition-open, transition: pod-ready, max: 0", result.Pass, 0, "of"}, 0},
		{gateCase{"objective: transition-open, transition: pod-ready, max: 0", result.Fail, 3, "storm: of 503 objects"}, 3},
		// Without the generator's own delay, the p99 of 3.5 s would pass.
		{gateCase{"objective: transition-latency, transition: pod-ready, max: 3700ms, over: [storm]", result.NoData, 0, "because of the generator's own delay"}, 0},
		// Few open objects: the p99 is at most the p99 of the finished objects.
		{gateCase{"objective: transition-latency, transition: pod-ready, max: 5s, over: [storm]", result.Pass, 4, "503 objects, 3 of them not ready at the end"}, 3},
		{gateCase{"objective: transition-latency, transition: pod-ready, max: 3900ms, over: [storm]", result.NoData, 0, "the true value is 3.8 s or more"}, 3},
		{gateCase{"objective: transition-latency, transition: pod-ready, max: 3s, over: [storm]", result.Fail, 3.8, "storm"}, 3},
		// Many open objects: the p99 is the time of an open object.
		{gateCase{"objective: transition-latency, transition: pod-ready, max: 5s, over: [storm]", result.NoData, 0, "the true value is 3.8 s or more"}, 100},
		{gateCase{"objective: transition-latency, transition: pod-ready, quantile: 1, max: 20s, over: [storm]", result.Fail, 30, "storm"}, 3},
		{gateCase{"objective: transition-latency, transition: pod-ready, quantile: 1, max: 40s, over: [storm]", result.NoData, 0, "30 s or more"}, 3},
		{gateCase{"objective: transition-latency, transition: job-complete, max: 5s", result.NoData, 0, "nothing was measured"}, 0},
	} {
		gates, err := Compile(plan.Of(withTransitions(t, c.gate)))
		if err != nil {
			t.Errorf("%s: %v", c.gate, err)
			continue
		}
		res, err := Judge(context.Background(), gates, &rundir.Recorded{Measurements: passed(c.open)})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.gate, res.Gates[0], c.verdict, c.value, c.detail)
	}
}

func TestTransitionGatesRefused(t *testing.T) {
	for gate, want := range map[string]string{
		"objective: transition-latency, max: 5s":                                        `gate "g" names no transition (add transition: pod-ready)`,
		"objective: transition-latency, transition: pod-redy, max: 5s":                  `transition: no transition "pod-redy" (did you mean "pod-ready"?)`,
		"objective: transition-latency, transition: pod-ready, quantile: 0.75, max: 5s": "quantile: 0.75 is not a recorded quantile (one of 0.5, 0.9, 0.95, 0.99, 0.999, 1)",
		"objective: transition-open, transition: pod-ready, quantile: 0.5, max: 5":      "quantile: objective transition-open takes no quantile",
		"objective: pod-startup, transition: pod-ready, max: 5s":                        "transition: objective pod-startup does not apply to transitions (leave it out)",
	} {
		_, err := Compile(plan.Of(withTransitions(t, gate)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", gate, err, want)
		}
	}
	if _, err := Compile(plan.Of(parse(t, "{name: g, objective: transition-latency, transition: pod-ready, max: 5s}"))); err == nil || !strings.Contains(err.Error(), "the scenario has no transitions (add transitions: [{name: pod-ready}])") {
		t.Error(err)
	}
}
