package gate

import (
	"context"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// delayed returns a run in which the generator caused part of the measured delay.
func delayed(change change) result.Measurements {
	m := told()
	for i := range m.Phases {
		for j := range m.Phases[i].Requests {
			r := &m.Phases[i].Requests[j]
			r.External = r.Latency
		}
		for j := range m.Phases[i].Watches {
			w := &m.Phases[i].Watches[j]
			w.External = w.Delivery
		}
		if w := m.Phases[i].Workload; w != nil {
			w.External = w.Startup
		}
	}
	change(&m, &m.Phases[1], &m.Phases[2])
	return m
}

// change alters the measurements of delayed.
type change func(m *result.Measurements, storm, recovery *result.Phase)

// stormSaturated reports a saturated generator in the storm.
func stormSaturated(_ *result.Measurements, storm, _ *result.Phase) {
	storm.Saturated = []string{"generator saturated in storm: x"}
}

// inStorm changes only the storm.
func inStorm(alter func(storm *result.Phase)) change {
	return func(_ *result.Measurements, storm, _ *result.Phase) { alter(storm) }
}

// A breach caused by the generator's own delay has no data, and the detail has both
// values. A breach that remains without that delay fails.
func TestGeneratorsOwnDelayBreaksNoBound(t *testing.T) {
	for name, c := range map[string]struct {
		gateCase
		change change
	}{
		"latency due to the generator": {
			gateCase{"objective: request-latency, max: 500ms, load: patch", result.NoData, 0, "storm/patch: 900 ms is over 500 ms, but only because of the generator's own delay: without it, the value would be 6 ms"},
			inStorm(func(storm *result.Phase) {
				storm.Requests[0].External = lat(240, 0.002, 0.006, 0.01)
			}),
		},
		"latency partly due to the generator": {
			gateCase{"objective: request-latency, max: 500ms, load: patch", result.Fail, 0.9, "storm/patch"},
			inStorm(func(storm *result.Phase) {
				storm.Requests[0].External = lat(240, 0.002, 0.7, 0.8)
			}),
		},
		"latency due to the generator in one phase, to the cluster in another": {
			gateCase{"objective: request-latency, max: 300ms, load: patch", result.Fail, 0.4, "recovery/patch"},
			inStorm(func(storm *result.Phase) {
				storm.Requests[0].External = lat(240, 0.002, 0.006, 0.01)
			}),
		},
		"latency that passes in spite of it": {
			gateCase{"objective: request-latency, max: 1s, load: patch", result.Pass, 0.9, "storm/patch"},
			inStorm(func(storm *result.Phase) {
				storm.Requests[0].External = lat(240, 0.002, 0.006, 0.01)
			}),
		},
		"latency in a run of old": {
			gateCase{"objective: request-latency, max: 500ms, load: patch", result.Fail, 0.9, "storm/patch"},
			inStorm(func(storm *result.Phase) { storm.Requests[0].External = result.Latency{} }),
		},
		"errors due to the generator": {
			gateCase{"objective: request-errors, max: 0.1%, over: [storm]", result.NoData, 0, "2.4% is over 0.1%, but only because of the generator's own delay: without it, the value would be 0%"},
			inStorm(func(storm *result.Phase) { storm.Requests[0].FailedLate = 6 }),
		},
		"all errors except one due to the generator": {
			gateCase{"objective: request-errors, max: 0.1%, over: [storm]", result.Fail, 6. / 250, "6 of 250"},
			inStorm(func(storm *result.Phase) { storm.Requests[0].FailedLate = 5 }),
		},
		"unsent requests due to the generator": {
			gateCase{"objective: unsent, max: 0%, load: patch", result.NoData, 0, "1.11% is over 0%, but only because of the generator's own delay: without it, the value would be 0%"},
			inStorm(func(storm *result.Phase) { storm.Requests[0].UnsentLate = 10 }),
		},
		"not achieved for its own": {
			gateCase{"objective: achieved, min: 99%, load: patch", result.NoData, 0, "97.9% is under 99%, but only because of the generator's own delay: without it, the value would be 99.7%"},
			inStorm(func(storm *result.Phase) {
				storm.Requests[0].UnsentLate, storm.Requests[0].FailedLate = 10, 6
			}),
		},
		"delivery time due to the generator": {
			gateCase{"objective: watch-delivery, max: 20ms", result.NoData, 0, "storm/crowd: 50 ms is over 20 ms, but only because of the generator's own delay: without it, the value would be 10 ms"},
			inStorm(func(storm *result.Phase) {
				storm.Watches[0].External = lat(1000, 0.001, 0.01, 0.02)
			}),
		},
		"startup time due to the generator": {
			gateCase{"objective: pod-startup, max: 4s", result.NoData, 0, "recovery: 4.5 s is over 4 s, but only because of the generator's own delay: without it, the value would be 3.5 s"},
			func(_ *result.Measurements, _, recovery *result.Phase) {
				recovery.Workload.External = lat(200, 0.7, 3.5, 4)
			},
		},
		"a phase that it made longer": {
			gateCase{"objective: phase-duration, max: 45s, over: [storm]", result.NoData, 0, "storm: 50 s is over 45 s, but only because of the generator's own delay: without it, the value would be 44 s"},
			inStorm(func(storm *result.Phase) { storm.StalledSeconds = 6 }),
		},
		"a recovery that it made longer, two phases long": {
			gateCase{"objective: time-to-recover, max: 95s", result.NoData, 0, "recovery: 97 s is over 95 s, but only because of the generator's own delay: without it, the value would be 94 s"},
			func(_ *result.Measurements, storm, recovery *result.Phase) {
				storm.StalledSeconds, recovery.StalledSeconds = 1.5, 1.5
			},
		},
		"nodes that it registered late": {
			gateCase{"objective: nodes-ready, max: 3s", result.NoData, 0, "the run: 3.5 s is over 3 s, but only because of the generator's own delay: without it, the value would be 2.5 s"},
			func(m *result.Measurements, _, _ *result.Phase) { m.Nodes.ReadyStalledSeconds = 1 },
		},
		"saturated, and it would have failed": {
			gateCase{"objective: request-latency, max: 500ms, load: patch", result.NoData, 0, "the generator was saturated in phase storm"},
			stormSaturated,
		},
		"saturated, and it would have passed": {
			gateCase{"objective: request-latency, max: 5s, load: patch", result.NoData, 0, "the generator was saturated in phase storm"},
			stormSaturated,
		},
		"saturated elsewhere": {
			gateCase{"objective: request-latency, max: 300ms, load: patch, over: [recovery]", result.Fail, 0.4, "recovery/patch"},
			stormSaturated,
		},
		"a ratio with one saturated phase": {
			gateCase{"objective: request-errors, max: 0.1%", result.NoData, 0, "the generator was saturated in phase storm"},
			stormSaturated,
		},
		"a condition that was not met while it was saturated": {
			gateCase{"objective: phase-duration, max: 5m, over: [storm]", result.NoData, 0, "the generator was saturated in phase storm"},
			inStorm(func(storm *result.Phase) {
				storm.ConditionMet, storm.Saturated = false, []string{"generator saturated in storm: x"}
			}),
		},
		"saturated before the first phase": {
			gateCase{"objective: nodes-ready, max: 3s", result.NoData, 0, "generator saturated: y"},
			func(m *result.Measurements, _, _ *result.Phase) {
				m.Generator.Saturated = []string{"generator saturated: y"}
			},
		},
		"what is about the generator itself": {
			gateCase{"objective: missed-heartbeats, max: 0", result.Fail, 2, "180 acknowledged"},
			stormSaturated,
		},
	} {
		expect(t, name, judged(t, "{name: g, "+c.gate+"}", nil, delayed(c.change)), c.verdict, c.value, c.detail)
	}
}

// If the generator was saturated, neither its own measurements nor a condition that was not met can fail the run.
// Server-side metrics still can.
func TestSaturatedGeneratorFailsNoRunByItself(t *testing.T) {
	l := newLab(t, scrape.Options{})
	api := l.Parts["kube-apiserver-0"]
	l.Boundary(time.Second)
	var phases []result.Phase
	for _, name := range []string{"calm", "storm", "recovery"} {
		phases = append(phases, l.Phase(name, func() {
			api.Observe("apiserver_request_sli_duration_seconds", `verb="PATCH",resource="nodes",scope="resource"`, apiEdges, 1.2, 100)
		}))
	}
	m := delayed(func(m *result.Measurements, storm, _ *result.Phase) {
		storm.ConditionMet, storm.Saturated = false, []string{"generator saturated in storm: x"}
		m.Generator.Saturated = storm.Saturated
	})
	for i := range m.Phases {
		m.Phases[i].Start, m.Phases[i].End = phases[i].Start, phases[i].End
	}
	archive := l.Archive()
	judge := func(gates ...string) result.Result {
		t.Helper()
		res, err := Judge(context.Background(), compiled(t, gates...), &rundir.Recorded{Archive: archive, Measurements: m})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	const client, server = "{name: client, objective: request-latency, max: 1ms, over: [storm]}", "{name: server, objective: mutating-latency, max: 1s}"
	if res := judge(client); res.Verdict != result.NoData || res.ExitCode != exitcode.NoData {
		t.Errorf("by the client's gate alone: %s, exit %d, %q; want no data and 3", res.Verdict, res.ExitCode, res.Reasons)
	}
	if withheld := judge(client).Gates[0].Withheld; withheld == nil || *withheld != 0.9 {
		t.Errorf("withheld %v, want the 900 ms that were measured", withheld)
	}
	res := judge(client, server)
	if res.Verdict != result.Fail || res.ExitCode != exitcode.Fail || res.Gates[0].Verdict != result.NoData || res.Gates[1].Verdict != result.Fail {
		t.Errorf("with the server's gate: %s, exit %d, %+v; want fail and 1 by the server's", res.Verdict, res.ExitCode, res.Gates)
	}
}
