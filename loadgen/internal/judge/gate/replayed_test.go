package gate

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
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
  - {name: storm, for: 30s, load: [{name: tuesday, kind: replay, recording: tuesday.recording}]}
`

// The gates that every replay has judge its fidelity; without a measurement they have no data.
func TestReplaysAreJudgedByTheirFidelity(t *testing.T) {
	s, err := scenario.Parse("again.yaml", []byte(replaying), nil)
	if err != nil {
		t.Fatal(err)
	}
	gates, err := Compile(plan.Of(s))
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

// A scenario can have gates on the shares of 404 and 409 in a replay's responses.
func TestStatusCodesOfAReplayAreJudged(t *testing.T) {
	s, err := scenario.Parse("again.yaml", []byte(replaying+`
gates:
  - {name: missing, objective: replay-not-found-error, load: tuesday, max: 1%}
  - {name: conflicts, objective: replay-conflict-error, max: 1%}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	gates, err := Compile(plan.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	codes := func(ok, missing, conflicts int64) map[string]int64 {
		return map[string]int64{"200": ok, "404": missing, "409": conflicts}
	}
	for name, c := range map[string]struct {
		recorded, seen     map[string]int64
		missing, conflicts result.Verdict
		detail             string
	}{
		"as recorded":       {codes(960, 30, 10), codes(961, 29, 10), result.Pass, result.Pass, "2.9% of the replay's responses, 3% in the recording"},
		"more missing":      {codes(960, 30, 10), codes(940, 50, 10), result.Fail, result.Pass, "5% of the replay's responses, 3% in the recording"},
		"fewer conflicts":   {codes(900, 50, 50), codes(950, 50, 0), result.Pass, result.Fail, "5% of the replay's responses, 5% in the recording"},
		"failures":          {codes(970, 30, 0), map[string]int64{"200": 485, "404": 15, "reset": 500}, result.Pass, result.Pass, "3% of the replay's responses, 3% in the recording"},
		"no codes recorded": {nil, codes(1, 0, 0), result.NoData, result.NoData, ""},
		"nothing answered":  {codes(1, 0, 0), nil, result.NoData, result.NoData, ""},
	} {
		m := result.Measurements{
			Phases:  []result.Phase{{Name: "calm"}, {Name: "storm"}},
			Replays: []result.Replay{{Load: "tuesday", Kinds: []result.ReplayKind{{Verb: "get", Resource: "configmaps", Codes: c.seen, RecordedCodes: c.recorded}}}},
		}
		for _, g := range gates {
			want := map[string]result.Verdict{"replay-not-found-error": c.missing, "replay-conflict-error": c.conflicts}[g.objective.Name]
			if want == "" {
				continue
			}
			judged, err := g.judge(t.Context(), &rundir.Recorded{Measurements: m}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if judged.Verdict != want || judged.Name == "missing" && c.detail != "" && !strings.Contains(judged.Detail, c.detail) {
				t.Errorf("%s: %s is %s (%s), want %s", name, judged.Name, judged.Verdict, judged.Detail, want)
			}
		}
	}
}
