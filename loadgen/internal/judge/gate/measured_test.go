package gate

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func lat(n int64, p50, p99, p999 float64) result.Latency {
	return result.Latency{Count: n, P50: p50, P99: p99, P999: p999}
}

func patch(offered, unsent, failed int64, p99 float64) result.Requests {
	sent := offered - unsent
	return result.Requests{Load: "patch", Offered: offered, Sent: sent, Unsent: unsent, Succeeded: sent - failed, Latency: lat(sent, p99/4, p99, p99*2)}
}

// told returns the generator's measurements of a run without problems.
func told() result.Measurements {
	at := time.UnixMilli(1_800_000_000_000).UTC()
	notReady, recovered := 41.5, 97.0
	crowd := func(expected, lost int64) result.Watches {
		return result.Watches{
			Load: "crowd", Wanted: 100, Open: 99, Expected: expected, Delivered: expected - lost, Lost: lost,
			Duplicated: 1, Reordered: 2, Delivery: lat(expected-lost, 0.004, 0.05, 0.4),
		}
	}
	return result.Measurements{
		Phases: []result.Phase{
			{Name: "calm", Start: at, End: at.Add(30 * time.Second), Requests: []result.Requests{patch(150, 0, 0, 0.02)}},
			{
				Name: "storm", Start: at.Add(31 * time.Second), End: at.Add(81 * time.Second), Until: "nodesNotReady", ConditionMet: true,
				Requests: []result.Requests{patch(250, 10, 6, 0.9)}, Watches: []result.Watches{crowd(1000, 0)},
				Changes:  []result.Changes{{Requests: result.Requests{Load: "news", Offered: 10, Sent: 10, Succeeded: 10, Latency: lat(10, 0.001, 0.003, 0.003)}}},
				Workload: &result.Workload{NotReadyAfter: &notReady, Startup: lat(20, 0.5, 2.5, 3)},
			},
			{
				Name: "recovery", Start: at.Add(82 * time.Second), End: at.Add(182 * time.Second), Until: "podsReady", ConditionMet: true,
				Requests: []result.Requests{patch(500, 0, 3, 0.4)}, Watches: []result.Watches{crowd(0, 0)},
				Workload: &result.Workload{RecoveredAfter: &recovered, Startup: lat(200, 0.7, 4.5, 5)},
			},
		},
		Nodes:     &result.Nodes{Count: 10, ReadySeconds: 3.5, Heartbeats: 180, MissedByGenerator: 2, MissedByServer: 31},
		Generator: result.Generator{MaxRSSBytes: 150e6},
		Scrapes:   result.Scrapes{Done: 60},
	}
}

// Every objective that the generator measures is checked against values computed by hand.
func TestMeasuredObjectives(t *testing.T) {
	for _, c := range []gateCase{
		{"objective: pod-startup, max: 5s", result.Pass, 4.5, "worst of 2 values: recovery: p99 of 200 samples"},
		{"objective: pod-startup, max: 2s, over: [storm]", result.Fail, 2.5, "storm"},
		{"objective: pod-startup-p50, max: 600ms", result.Fail, 0.7, "recovery"},
		{"objective: request-latency, max: 1s", result.Pass, 0.9, "worst of 4 values: storm/patch"},
		{"objective: request-latency, max: 500ms, load: patch", result.Fail, 0.9, "storm/patch"},
		{"objective: request-latency, max: 500ms, load: patch, over: [calm, recovery]", result.Pass, 0.4, "recovery/patch"},
		{"objective: request-latency, max: 10ms, load: news", result.Pass, 0.003, "storm/news"},
		{"objective: request-errors, max: 0.1%", result.Fail, 9. / 900, "9 of 900 requests failed"},
		{"objective: unsent, max: 0%, load: patch", result.Fail, 10. / 900, "10 of 900"},
		{"objective: unsent, max: 0%, over: [recovery]", result.Pass, 0, "0 of 500"},
		{"objective: achieved, min: 95%, load: patch", result.Pass, 881. / 900, "881 of 900"},
		{"objective: achieved, min: 99%, load: patch", result.Fail, 881. / 900, ""},
		{"objective: watch-delivery, max: 50ms", result.Pass, 0.05, "storm/crowd: p99 of 1000 samples"},
		{"objective: watch-delivery-p999, max: 100ms", result.Fail, 0.4, ""},
		{"objective: watch-lost, max: 0, over: [storm]", result.Pass, 0, "of 1000 expected"},
		{"objective: watch-duplicated, max: 0", result.Fail, 1, ""},
		{"objective: watch-reordered, max: 2", result.Pass, 2, ""},
		{"objective: watches-open, min: 100%, over: [storm]", result.Fail, 0.99, "99 of 100"},
		{"objective: phase-duration, max: 60s, over: [storm]", result.Pass, 50, "storm"},
		{"objective: phase-duration, max: 60s", result.Fail, 100, "recovery"},
		{"objective: time-to-not-ready, max: 1m", result.Pass, 41.5, "storm"},
		{"objective: time-to-recover, max: 1m", result.Fail, 97, "recovery"},
		{"objective: missed-heartbeats, max: 0", result.Fail, 2, "counts only misses caused by loadgen; 31 missed because of the API server, 180 acknowledged"},
		{"objective: nodes-ready, max: 30s", result.Pass, 3.5, "10 nodes"},
		{"objective: generator-memory, max: 200MB", result.Pass, 150e6, ""},
	} {
		expect(t, c.gate, judged(t, "{name: g, "+c.gate+"}", nil, told()), c.verdict, c.value, c.detail)
	}
}

// A gate names the phase and load of its value, if the value is from one phase and load.
func TestGateNamesPhaseAndLoad(t *testing.T) {
	for gate, want := range map[string][2]string{
		"objective: request-latency, max: 10ms":                   {"storm", "patch"},
		"objective: request-latency, max: 10ms, over: [recovery]": {"recovery", "patch"},
		"objective: request-latency, max: 1s":                     {"storm", "patch"},
		"objective: phase-duration, max: 60s":                     {"recovery", ""},
		"objective: request-errors, max: 0.1%":                    {}, // of all phases
		"objective: missed-heartbeats, max: 0":                    {}, // of the run
	} {
		if g := judged(t, "{name: g, "+gate+"}", nil, told()); g.WorstPhase != want[0] || g.WorstLoad != want[1] {
			t.Errorf("%s: %s of phase %q and load %q, want %q", gate, g.Verdict, g.WorstPhase, g.WorstLoad, want)
		}
	}
}

// A condition that was not met fails with the waiting time.
func TestConditionNotMet(t *testing.T) {
	m := told()
	m.Phases[2].ConditionMet, m.Phases[2].Workload.RecoveredAfter = false, nil
	for _, gate := range []string{"objective: phase-duration, max: 1h, over: [recovery]", "objective: time-to-recover, max: 1h"} {
		expect(t, gate, judged(t, "{name: g, "+gate+"}", nil, m), result.Fail, 100, "condition podsReady was not met")
	}
	res, err := Judge(context.Background(), compiled(t, "{name: memory, objective: generator-memory, max: 1GB}"), &rundir.Recorded{Measurements: m})
	if err != nil || res.Verdict != result.Fail || res.ExitCode != exitcode.Fail || !slices.Contains(res.Reasons, "phase recovery: podsReady was not met in 1m40s") {
		t.Errorf("a gate covers the phase: %s %d %q %v", res.Verdict, res.ExitCode, res.Reasons, err)
	}
	res, err = Judge(context.Background(), compiled(t, "{name: startup, objective: pod-startup, max: 1h, over: [storm]}"), &rundir.Recorded{Measurements: m})
	if err != nil || res.Verdict != result.Pass {
		t.Errorf("no gate covers the phase: %s %q %v", res.Verdict, res.Reasons, err)
	}
}

// A load with a mix has a row for each kind of its requests. The worst row counts, not the last.
func TestEveryKindOfAMixIsJudged(t *testing.T) {
	m := told()
	slow, fast := patch(150, 0, 0, 3), patch(150, 0, 0, 0.02)
	fast.Verb = "get"
	m.Phases[0].Requests = []result.Requests{slow, fast}
	expect(t, "a slow kind before a fast one", judged(t, "{name: g, objective: request-latency, max: 1s, load: patch, over: [calm]}", nil, m), result.Fail, 3, "calm/patch")
}

func TestNoDataOfMeasuredObjectives(t *testing.T) {
	for what, c := range map[string]struct {
		gate string
		do   func(*result.Measurements)
		why  string
	}{
		"load absent": {
			"objective: request-latency, max: 1h, load: patch",
			func(m *result.Measurements) {
				for i := range m.Phases {
					m.Phases[i].Requests = nil
				}
			}, "load patch has no samples",
		},
		"both loads absent": {
			"objective: request-latency, max: 1h",
			func(m *result.Measurements) {
				for i := range m.Phases {
					m.Phases[i].Requests, m.Phases[i].Changes = nil, nil
				}
			}, "load patch has no samples in calm, storm, recovery; load news has no samples in calm, storm, recovery",
		},
		"both loads sent nothing": {
			"objective: request-errors, max: 99%, over: [storm]",
			func(m *result.Measurements) {
				m.Phases[1].Requests[0].Sent, m.Phases[1].Changes[0].Sent = 0, 0
			}, "load patch has no samples in storm; load news has no samples in storm",
		},
		"one of two loads absent": {
			"objective: request-errors, max: 99%", func(m *result.Measurements) { m.Phases[1].Changes = nil }, "load news has no samples",
		},
		"load without samples": {
			"objective: request-latency, max: 1h, load: news",
			func(m *result.Measurements) { m.Phases[1].Changes[0].Latency = result.Latency{} }, "load news has no samples",
		},
		"named phase without samples": {
			"objective: request-latency, max: 1h, load: patch, over: [calm, storm]",
			func(m *result.Measurements) { m.Phases[0].Requests = nil }, "nothing was measured in calm",
		},
		"nothing sent":             {"objective: request-errors, max: 99%, over: [calm]", func(m *result.Measurements) { m.Phases[0].Requests[0].Sent = 0 }, "load patch has no samples"},
		"no writes to deliver":     {"objective: watch-lost, max: 0", func(m *result.Measurements) { m.Phases[1].Watches[0].Expected = 0 }, "load crowd has no samples"},
		"nothing delivered":        {"objective: watch-delivery, max: 1h", func(m *result.Measurements) { m.Phases[1].Watches[0].Delivery = result.Latency{} }, "load crowd has no samples"},
		"phase never reached":      {"objective: phase-duration, max: 1h", func(m *result.Measurements) { m.Phases = m.Phases[:2] }, "phase recovery was never reached"},
		"load's phase not reached": {"objective: watch-lost, max: 1", func(m *result.Measurements) { m.Phases = m.Phases[:1] }, "phase storm was never reached"},
		"phase interrupted":        {"objective: phase-duration, max: 1h", func(m *result.Measurements) { m.Phases[2].Interrupted = true }, "phase recovery was interrupted"},
		"interrupted mid-load":     {"objective: unsent, max: 99%", func(m *result.Measurements) { m.Phases[2].Interrupted = true }, "phase recovery was interrupted"},
		"no pod started":           {"objective: pod-startup, max: 1h, over: [calm]", func(*result.Measurements) {}, "nothing was measured in calm"},
		"no failure seen":          {"objective: time-to-recover, max: 1h, over: [storm]", func(*result.Measurements) {}, "nothing was measured in storm"},
		"no nodes":                 {"objective: missed-heartbeats, max: 0", func(m *result.Measurements) { m.Nodes = nil }, "the measurements of the nodes were not recorded"},
		"no heartbeat":             {"objective: missed-heartbeats, max: 0", func(m *result.Measurements) { *m.Nodes = result.Nodes{} }, "nothing was measured"},
		"nodes never ready":        {"objective: nodes-ready, max: 1h", func(m *result.Measurements) { m.Nodes.ReadySeconds = 0 }, "the nodes were never all Ready at the same time"},
		"generator not measured":   {"objective: generator-memory, max: 1GB", func(m *result.Measurements) { m.Generator = result.Generator{} }, "nothing was measured"},
		"past the histogram": {
			"objective: watch-delivery-p999, max: 1h",
			func(m *result.Measurements) { m.Phases[1].Watches[0].Delivery.Clamped = 50 }, "or more, so it is not known whether it meets the bound",
		},
		"past one histogram, under another": {
			"objective: request-latency, max: 10s",
			func(m *result.Measurements) {
				m.Phases[1].Changes[0].Latency = result.Latency{Count: 10, P99: 2, Clamped: 5}
				m.Phases[1].Requests[0].Latency.P99 = 8
			}, "storm/news: the true value is 2 s or more",
		},
		"named phase sent nothing": {
			"objective: request-errors, max: 99%, load: patch, over: [calm, storm]",
			func(m *result.Measurements) { m.Phases[1].Requests[0].Sent = 0 }, "nothing was measured in storm",
		},
		"killed run": {"objective: request-latency, max: 1h", func(m *result.Measurements) { *m = result.Measurements{} }, "no phase was measured"},
	} {
		m := told()
		c.do(&m)
		expect(t, what, judged(t, "{name: g, "+c.gate+"}", nil, m), result.NoData, 0, c.why)
	}
}

// The end of one node failure does not count for the next.
func TestUnendedFailureHasNoData(t *testing.T) {
	s, err := scenario.Parse("two.yaml", []byte(`apiVersion: stormglass/v1alpha1
kind: Scenario
name: two
nodes: {count: 10}
phases:
  - {name: first, for: 1m, faults: [{kind: nodeFailure, fraction: 0.1}]}
  - {name: return, for: 1m, faults: [{kind: nodeRecovery}]}
  - {name: second, for: 1m, faults: [{kind: nodeFailure, fraction: 0.1}]}
gates:
  - {name: recovered, objective: time-to-recover, max: 1m}
  - {name: first, objective: time-to-recover, max: 1m, over: [first, return]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	gates, err := Compile(plan.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	at, took := time.UnixMilli(1_800_000_000_000).UTC(), 20.0
	ended, not := &result.Workload{RecoveredAfter: &took}, &result.Workload{}
	for what, c := range map[string]struct {
		second *result.Workload
		want   result.Verdict
	}{"both": {ended, result.Pass}, "the first alone": {not, result.NoData}} {
		var m result.Measurements
		for name, w := range map[string]*result.Workload{"first": ended, "return": not, "second": c.second} {
			m.Phases = append(m.Phases, result.Phase{Name: name, Start: at, End: at.Add(time.Minute), Workload: w})
		}
		res, err := Judge(t.Context(), gates, &rundir.Recorded{Measurements: m})
		if err != nil {
			t.Fatal(err)
		}
		if g := res.Gates[0]; g.Verdict != c.want || c.want == result.NoData && g.Detail != "the end of the failure in second was not observed" {
			t.Errorf("%s recovered: %s, %q", what, g.Verdict, g.Detail)
		}
	}
}

// These conditions prevent a pass for the whole run, and some take precedence over others.
func TestVerdictOfARun(t *testing.T) {
	const good, bad, blind = "{name: good, objective: generator-memory, max: 1GB}", "{name: bad, objective: nodes-ready, max: 1s}", "{name: blind, objective: wal-fsync, max: 1s}"
	for what, c := range map[string]struct {
		gates   []string
		run     result.Run
		do      func(*result.Measurements)
		verdict result.Verdict
		code    int
		reason  string
	}{
		"pass":              {[]string{good}, result.Run{}, nil, result.Pass, 0, ""},
		"failure":           {[]string{good, bad}, result.Run{}, nil, result.Fail, 1, "bad: 3.5 s is over 1 s"},
		"no data":           {[]string{good, blind}, result.Run{}, nil, result.NoData, 3, "blind: no data: there is no archive"},
		"failure first":     {[]string{blind, bad}, result.Run{Interrupted: true}, nil, result.Fail, 1, "bad: 3.5 s"},
		"interrupted":       {[]string{good}, result.Run{Interrupted: true}, func(m *result.Measurements) { m.Phases[2].Interrupted = true }, result.NoData, 3, "the run was interrupted in phase recovery, after 1m40s"},
		"saturated":         {[]string{good}, result.Run{}, func(m *result.Measurements) { m.Generator.Saturated = []string{"generator saturated: x"} }, result.NoData, 3, "generator saturated: x"},
		"unexpected exit":   {[]string{good}, result.Run{UnexpectedExits: []string{"etcd-0: killed\n"}}, nil, result.NoData, 3, "unexpected exit: etcd-0: killed"},
		"scrape lost":       {[]string{good}, result.Run{}, func(m *result.Measurements) { m.Scrapes.Failed = map[string]int64{"etcd-0": 2} }, result.NoData, 3, "2 of 60 scrapes were lost: etcd-0"},
		"no gates":          {nil, result.Run{}, nil, result.NoData, 3, "there are no gates"},
		"environment":       {[]string{good}, result.Run{Failure: "disk full"}, nil, result.NoData, 4, "the environment failed: disk full"},
		"environment beats": {[]string{bad}, result.Run{Failure: "disk full"}, nil, result.Fail, 4, "the environment failed: disk full"},
	} {
		m := told()
		if c.do != nil {
			c.do(&m)
		}
		var gates []Compiled
		if c.gates != nil {
			gates = compiled(t, c.gates...)
		}
		res, err := Judge(context.Background(), gates, &rundir.Recorded{Run: c.run, Measurements: m})
		if err != nil {
			t.Fatal(err)
		}
		if res.Verdict != c.verdict || res.ExitCode != c.code {
			t.Errorf("%s: %s, exit %d; want %s, %d", what, res.Verdict, res.ExitCode, c.verdict, c.code)
		}
		if c.reason == "" && len(res.Reasons) > 0 || c.reason != "" && (len(res.Reasons) == 0 || !strings.HasPrefix(res.Reasons[0], c.reason)) {
			t.Errorf("%s: reasons %q, want first %q", what, res.Reasons, c.reason)
		}
		if len(res.Key) != 4 || res.Key[0].Missing == "" || res.Schema != result.Schema {
			t.Errorf("%s: key metrics = %+v", what, res.Key)
		}
	}
}

// An exit that made the environment fail appears only once in the reasons.
func TestFailureIsReportedOnce(t *testing.T) {
	r := result.Run{Failure: "the control plane ended: etcd-0 died\n  its last line", UnexpectedExits: []string{"etcd-0 died\n  its last line"}}
	res, err := Judge(t.Context(), compiled(t, "{name: sent, objective: unsent, max: 0}"), &rundir.Recorded{Run: r, Measurements: told()})
	if err != nil || strings.Count(strings.Join(res.Reasons, "\n"), "etcd-0 died") != 1 {
		t.Errorf("%q, %v", res.Reasons, err)
	}
}

// For an expression, the figure states whether higher values are better.
func TestBetterOfAnExpression(t *testing.T) {
	s := parse(t, "{name: sent, objective: unsent, max: 0}")
	s.Compare = []scenario.Figure{{Name: "errors", Expr: "up"}, {Name: "throughput", Expr: "up", Better: "higher"}}
	figures, err := Figures(plan.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Measure(t.Context(), figures, &rundir.Recorded{Measurements: told()})
	if err != nil || len(got) != 2 || got[0].Better != "lower" || got[1].Better != "higher" {
		t.Errorf("%+v: %v", got, err)
	}
}

// If a figure has no data in one phase and lower values are better, its value is a lower bound. If higher values are
// better, it has no value.
func TestFigureOfWhatIsMissing(t *testing.T) {
	s := parse(t, "{name: sent, objective: unsent, max: 0}")
	s.Compare = []scenario.Figure{
		{Name: "p99", Objective: "custom-figure", Figure: "reconcile/p99"}, {Name: "known", Objective: "custom-figure", Figure: "reconcile/p99", Over: []string{"calm"}},
		{Name: "rate", Objective: "custom-figure", Figure: "reconcile/p99", Better: "higher"},
	}
	figures, err := Figures(plan.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	m := told()
	for i := range m.Phases {
		m.Phases[i].Custom = []result.Custom{{Measurement: "reconcile", Figures: []result.CustomFigure{{Name: "p99", Value: 0.2, Unit: "seconds"}}}}
	}
	m.Phases[1].Custom = []result.Custom{{Measurement: "reconcile", Error: "no watch"}}
	got, err := Measure(t.Context(), figures, &rundir.Recorded{Measurements: m})
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v: %v", got, err)
	}
	if f := got[0]; f.Value == nil || *f.Value != 0.2 || !f.AtLeast || !strings.Contains(f.Detail, "no watch") {
		t.Errorf("with a phase that has no data: %+v", f)
	}
	if f := got[1]; f.Value == nil || f.AtLeast {
		t.Errorf("of a phase with data: %+v", f)
	}
	if f := got[2]; f.Value != nil {
		t.Errorf("better when higher: %v", *f.Value)
	}
}
