package gate

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Values measured in or across a phase that the user changed count as no data. Other phases are judged.
func TestSteeredPhasesHaveNoData(t *testing.T) {
	paused := func(m *result.Measurements) { m.Phases[1].PausedSeconds = 8 }
	ended := func(m *result.Measurements) { m.Phases[1].EndedEarly, m.Phases[1].ConditionMet = true, false }
	unmet := func(m *result.Measurements) { m.Phases[1].PausedSeconds, m.Phases[1].ConditionMet = 8, false }
	const whyPaused, whyEnded = "load was paused by the user for 8 s in phase storm", "phase storm was ended early by the user, after 50 s"
	for what, c := range map[string]struct {
		gate string
		do   func(*result.Measurements)
		why  string
	}{
		"latency, paused":          {"objective: request-latency, max: 1h", paused, whyPaused},
		"errors, paused":           {"objective: request-errors, max: 99%", paused, whyPaused},
		"deliveries, ended":        {"objective: watch-lost, max: 100", ended, whyEnded},
		"duration, ended":          {"objective: phase-duration, max: 1h", ended, whyEnded},
		"duration, unmet":          {"objective: phase-duration, max: 1h, over: [storm]", unmet, whyPaused},
		"time to NotReady, ended":  {"objective: time-to-not-ready, max: 1h, over: [storm]", ended, whyEnded},
		"recovery across, paused":  {"objective: time-to-recover, max: 1h, over: [recovery]", paused, whyPaused},
		"pods that start, paused":  {"objective: pod-startup, max: 1h, over: [storm]", paused, whyPaused},
		"a value that would break": {"objective: request-latency, max: 1ms, over: [storm]", paused, whyPaused},
	} {
		m := told()
		c.do(&m)
		expect(t, what, judged(t, "{name: g, "+c.gate+"}", nil, m), result.NoData, 0, c.why)
		m = told()
		c.do(&m)
		expect(t, what+", elsewhere", judged(t, "{name: g, objective: phase-duration, max: 1h, over: [calm]}", nil, m), result.Pass, 30, "calm")
	}
}

// A condition that was not met while load was paused, or for which the user did not wait, is not a failure of
// the cluster.
func TestSteeredConditionIsNoFailure(t *testing.T) {
	for what, change := range map[string]func(*result.Phase){
		"paused": func(p *result.Phase) { p.PausedSeconds = time.Minute.Seconds() },
		"ended":  func(p *result.Phase) { p.EndedEarly = true },
	} {
		m := told()
		m.Phases[1].ConditionMet = false
		change(&m.Phases[1])
		for gate, want := range map[string]result.Verdict{
			"{name: g, objective: request-latency, max: 1h, over: [storm]}": result.NoData,
			"{name: g, objective: phase-duration, max: 1h, over: [calm]}":   result.Pass,
		} {
			res, err := Judge(t.Context(), compiled(t, gate), &rundir.Recorded{Measurements: m})
			if err != nil {
				t.Fatal(err)
			}
			if res.Verdict != want {
				t.Errorf("%s, %s: %s, want %s: %q", what, gate, res.Verdict, want, res.Reasons)
			}
		}
		if notes := SteeredNotes(m.Phases); len(notes) != 1 {
			t.Errorf("%s: notes %q", what, notes)
		}
	}
}
