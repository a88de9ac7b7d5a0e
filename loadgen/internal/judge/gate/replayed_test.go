package gate

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const replaying = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: again
phases:
  - {name: calm, for: 30s}
  - {name: storm, for: 30s, load: [{name: tuesday, kind: replay, trace: tuesday.trace}]}
`

// The gates that every replay has judge its fidelity; without a measurement they have no data.
func TestReplaysAreJudgedByTheirFidelity(t *testing.T) {
	s, err := scenario.Parse("again.yaml", []byte(replaying), nil)
	if err != nil {
		t.Fatal(err)
	}
	gates, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	share := func(v float64) *float64 { return &v }
	storm := result.Phase{Name: "storm"}
	saturated, interrupted := storm, storm
	saturated.Saturated = []string{"it had no CPU left"}
	interrupted.Interrupted = true
	for name, c := range map[string]struct {
		replays          []result.Replay
		storm            result.Phase
		rate, dispersion result.Verdict
	}{
		"faithful":    {[]result.Replay{{Load: "tuesday", RateError: share(0.01), DispersionError: share(0.1)}}, storm, result.Pass, result.Pass},
		"unfaithful":  {[]result.Replay{{Load: "tuesday", RateError: share(0.011), DispersionError: share(1.7)}}, storm, result.Fail, result.Fail},
		"too short":   {[]result.Replay{{Load: "tuesday", RateError: share(0)}}, storm, result.Pass, result.NoData},
		"nothing due": {[]result.Replay{{Load: "tuesday"}}, storm, result.NoData, result.NoData},
		"not run":     {nil, storm, result.NoData, result.NoData},
		"saturated":   {[]result.Replay{{Load: "tuesday", RateError: share(0), DispersionError: share(0)}}, saturated, result.NoData, result.NoData},
		"interrupted": {[]result.Replay{{Load: "tuesday", RateError: share(0), DispersionError: share(0)}}, interrupted, result.NoData, result.NoData},
	} {
		m := result.Measurements{Phases: []result.Phase{{Name: "calm"}, c.storm}, Replays: c.replays}
		got := map[string]result.Verdict{}
		for _, g := range gates {
			judged, err := g.judge(t.Context(), &rundir.Recorded{Measurements: m}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got[judged.Objective] = judged.Verdict
		}
		if len(got) != 2 || got["replay-rate-error"] != c.rate || got["replay-dispersion-error"] != c.dispersion {
			t.Errorf("%s: %v, want rate %s and dispersion %s", name, got, c.rate, c.dispersion)
		}
	}
}
