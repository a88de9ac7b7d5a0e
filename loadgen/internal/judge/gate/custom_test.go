package gate

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A gate on a custom figure judges the worst phase, in the unit of the figure.
func TestCustomFigures(t *testing.T) {
	m := told()
	figures := func(seconds, size float64) []result.Custom {
		return []result.Custom{
			{Measurement: "reconcile", Figures: []result.CustomFigure{{Name: "p99", Value: seconds, Unit: "seconds"}, {Name: "cache", Value: size, Unit: "bytes"}}},
			{Measurement: "lost", Error: "no watch"},
		}
	}
	m.Phases[0].Custom, m.Phases[1].Custom, m.Phases[2].Custom = figures(0.2, 1e6), figures(0.9, 3e6), figures(0.4, 2e6)
	saturated := told()
	saturated.Phases[1].Custom, saturated.Phases[1].Saturated = figures(0.9, 1), []string{"late"}
	for _, c := range []struct {
		gateCase
		m result.Measurements
	}{
		{gateCase{"figure: reconcile/p99, max: 1s", result.Pass, 0.9, "worst of 3 values: storm"}, m},
		{gateCase{"figure: reconcile/p99, max: 500ms", result.Fail, 0.9, "storm"}, m},
		{gateCase{"figure: reconcile/p99, max: 500ms, over: [calm, recovery]", result.Pass, 0.4, "worst of 2 values: recovery"}, m},
		{gateCase{"figure: reconcile/p99, max: 0.5", result.Fail, 0.9, "storm"}, m},
		{gateCase{"figure: reconcile/cache, min: 1MB", result.Pass, 1e6, "worst of 3 values: calm"}, m},
		{gateCase{"figure: reconcile/p99, max: 1MB", result.NoData, 0, "figure reconcile/p99 is in seconds, but its bound is in bytes"}, m},
		{gateCase{"figure: reconcile/p98, max: 1s", result.NoData, 0, "measurement reconcile has no figure p98; it has cache, p99"}, m},
		{gateCase{"figure: lost/p99, max: 1s, over: [storm]", result.NoData, 0, "measurement lost in storm: no watch"}, m},
		{gateCase{"figure: other/p99, max: 1s, over: [storm]", result.NoData, 0, "measurement other was not made in storm"}, m},
		{gateCase{"figure: reconcile/p99, max: 1s, over: [storm]", result.NoData, 0, "the generator was saturated in phase storm"}, saturated},
	} {
		expect(t, c.gate, judged(t, "{name: g, objective: custom-figure, "+c.gate+"}", nil, c.m), c.verdict, c.value, c.detail)
	}
}

// Compile reports an invalid name of a figure before anything starts.
func TestCustomFigureErrors(t *testing.T) {
	for gate, want := range map[string]string{
		"objective: custom-figure, max: 1s":                                    "gates.g: objective custom-figure requires a figure (write figure: MEASUREMENT/FIGURE, for example reconcile/p99)",
		"objective: custom-figure, figure: p99, max: 1s":                       `gates.g.figure: "p99" is not a figure (write MEASUREMENT/FIGURE`,
		"objective: wal-fsync, figure: reconcile/p99, max: 1s":                 "gates.g.figure: only objective custom-figure has this field (leave it out, or write objective: custom-figure)",
		"alert: etcdNoLeader, fires: false, figure: reconcile/p99":             "gates.g.figure: only objective custom-figure has this field",
		"objective: custom-figure, figure: reconcile/p99, load: patch, max: 1": "gates.g.load: objective custom-figure does not apply to loads",
	} {
		s, err := scenario.Parse("lab.yaml", []byte(base+"  - {name: g, "+gate+"}\n"), nil)
		if err == nil {
			_, err = Compile(plan.Of(s))
		}
		if err == nil || !strings.HasPrefix(err.Error(), "lab.yaml:19: "+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n got %v\nwant %s", gate, err, want)
		}
	}
}
