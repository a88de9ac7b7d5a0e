package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The buckets of the real components.
var (
	apiEdges   = []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}
	fsyncEdges = []float64{0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128}
	schedEdges = []float64{0.001, 0.002, 0.004, 0.008, 0.016, 0.032}
	limitEdges = []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2}
)

// stormy records three phases: a few requests in calm, the storm described below, and
// half of it in recovery.
func stormy(t *testing.T, o scrape.Options) (*archivetest.Lab, result.Measurements) {
	t.Helper()
	l := newLab(t, o)
	api, etcd0, etcd1 := l.Parts["kube-apiserver-0"], l.Parts["etcd-0"], l.Parts["etcd-1"]
	sli := func(labels string, v, n float64) {
		api.Observe("apiserver_request_sli_duration_seconds", labels, apiEdges, v, n)
	}
	const patch, post = `verb="PATCH",resource="nodes",scope="resource"`, `verb="POST",resource="pods",scope="resource"`
	sli(patch, 60, 1000) // before the run: must not count
	etcd0.Add("etcd_server_leader_changes_seen_total", 1)
	etcd1.Add("etcd_server_leader_changes_seen_total", 4)
	api.Add(`apiserver_request_total{code="200"}`, 100)
	l.Boundary(time.Second)
	for _, c := range l.Parts {
		c.Add("process_cpu_seconds_total", 5)
	}
	calm := l.Phase("calm", func() {
		api.Add(`apiserver_request_total{code="200"}`, 100)
		etcd0.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.0015, 100)
		etcd1.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.0015, 100)
	})
	storm := l.Phase("storm", func() {
		sli(patch, 0.03, 995)
		sli(patch, 0.3, 5)
		sli(post, 0.03, 900)
		sli(post, 0.7, 100) // p99 in (0.6, 0.8]: 90% into the bucket
		sli(`verb="POST",resource="subjectaccessreviews",scope="resource"`, 50, 10)
		sli(`verb="GET",resource="leases",scope="resource"`, 0.15, 100)
		sli(`verb="LIST",resource="pods",scope="cluster"`, 2.5, 100)
		sli(`verb="LIST",resource="nodes",scope="cluster"`, 70, 1) // past the last bucket
		etcd0.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.003, 1000)
		etcd1.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.003, 950)
		etcd1.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.02, 50)
		etcd0.Add("etcd_server_leader_changes_seen_total", 1)
		etcd1.Add("etcd_server_leader_changes_seen_total", 2)
		l.Parts["kube-scheduler-0"].Observe("scheduler_scheduling_attempt_duration_seconds", `result="scheduled"`, schedEdges, 0.003, 100)
		l.Parts["kube-scheduler-0"].Observe("scheduler_scheduling_attempt_duration_seconds", `result="unschedulable"`, schedEdges, 0.03, 900)
		l.Parts["kube-controller-manager-0"].Observe("rest_client_rate_limiter_duration_seconds", `verb="POST"`, limitEdges, 0.4, 100)
		l.Parts["kube-scheduler-0"].Observe("rest_client_rate_limiter_duration_seconds", `verb="POST"`, limitEdges, 0.001, 100)
		api.Add(`apiserver_request_total{code="429"}`, 7) // born here
		for _, c := range l.Parts {
			c.Add("process_cpu_seconds_total", 10)
		}
	})
	storm.Until, storm.ConditionMet = "nodesNotReady", true
	recovery := l.Phase("recovery", func() {
		sli(patch, 0.03, 100)
		api.Add(`apiserver_request_total{code="429"}`, 2)
		etcd0.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.0015, 100)
		etcd1.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.0015, 100)
	})
	recovery.Until, recovery.ConditionMet = "podsReady", true
	return l, result.Measurements{Phases: []result.Phase{calm, storm, recovery}}
}

// Every objective on scraped metrics is checked against values computed by hand.
func TestScrapedObjectives(t *testing.T) {
	l, m := stormy(t, scrape.Options{})
	a := l.Archive()
	for _, c := range []gateCase{
		// The worst pair is POST pods: not the better PATCH nodes, not the 50 s of a
		// virtual resource, and not the requests before the run.
		{"objective: mutating-latency, max: 1s, over: [storm]", result.Pass, 0.78, "POST pods"},
		{"objective: mutating-latency, max: 1s, over: [storm]", result.Pass, 0.78, "p99 between 600 ms and 800 ms (1000 observations by kube-apiserver)"},
		{"objective: mutating-latency, max: 700ms, over: [storm, recovery]", result.Fail, 0.78, "worst of 3 values: storm"},
		{"objective: mutating-latency, min: 700ms, over: [storm]", result.Fail, 0.05 * 990 / 995, "PATCH nodes"},
		{"objective: mutating-latency, max: 1s", result.Pass, 0.78, ""}, // calm had no samples and is skipped
		{"objective: read-latency, max: 1s, over: [storm]", result.Pass, 0.199, "leases"},
		{"objective: list-latency, max: 30s, over: [storm]", result.Fail, 60, "past the last bucket, which ends at 60 s"},
		{"objective: wal-fsync, max: 10ms", result.Fail, 0.016 + 0.016*0.8, "etcd-1"},
		{"objective: wal-fsync, max: 10ms, over: [calm]", result.Pass, 0.00199, "etcd-"},
		{"objective: wal-fsync-slow, max: 1%", result.Fail, 0.05, "etcd-1"},
		{"objective: wal-fsync-slow, max: 5%, over: [storm]", result.Pass, 0.05, ""},
		{"objective: leader-changes, max: 1/h", result.Fail, 2, "calm to recovery"},
		{"objective: leader-changes, max: 2/h, over: [storm, recovery]", result.Pass, 2, "storm to recovery"},
		{"objective: leader-changes, max: 0, over: [calm]", result.Pass, 0, ""},
		{"objective: scheduling-latency, max: 5ms, over: [storm]", result.Pass, 0.00398, ""},
		{"objective: too-many-requests, max: 9", result.Pass, 9, ""},
		{"objective: too-many-requests, max: 0, over: [calm]", result.Pass, 0, ""},
		{"objective: too-many-requests, max: 6, over: [storm]", result.Fail, 7, ""},
		{"objective: throttled, max: 250ms, over: [storm]", result.Fail, 0.4975, "kube-controller-manager"},
		{"objective: generator-cpu, max: 20%", result.Pass, 1. / 6, ""},
		{`expr: 'sum(round(increase(apiserver_request_total{code="200"}[$window])))', max: 100, over: [calm]`, result.Pass, 100, "calm"},
		{`expr: 'max(process_open_fds)', max: 41`, result.Fail, 42, "worst of 3"},
		{`expr: 'sum(round(increase(apiserver_request_total{code="429"}[$window])))', max: 8, over: [storm, recovery]`, result.Pass, 7, "worst of 2 values: storm"},
		{`expr: 'sum(round(increase(apiserver_request_total{code="429"}[$window])))', max: 8, over: [storm, recovery], together: true`, result.Fail, 9, "storm to recovery"},
		{"objective: mutating-latency, max: 1s, together: true", result.Pass, 0.78, "calm to recovery, POST pods"},
	} {
		g := judged(t, "{name: g, "+c.gate+"}", a, m)
		expect(t, c.gate, g, c.verdict, c.value, c.detail)
		if strings.Contains(g.Expr, "$") || g.Expr == "" {
			t.Errorf("%s: the evaluated PromQL is %q", c.gate, g.Expr)
		}
	}
}

// The value of a quantile equals Prometheus' result for the PromQL shown.
func TestShownExpressionGivesTheValue(t *testing.T) {
	l, m := stormy(t, scrape.Options{})
	a := l.Archive()
	g := judged(t, "{name: g, objective: mutating-latency, max: 1s, over: [storm]}", a, m)
	samples, err := a.Instant(t.Context(), "max("+g.Expr+")", m.Phases[1].End)
	if err != nil || len(samples) != 1 || samples[0].V != *g.Value {
		t.Errorf("%s returns %v (%v), but the gate reports %v", g.Expr, samples, err, *g.Value)
	}
}

// A pass has an empty list of reasons and not null, because programs iterate over it.
func TestPassHasNoReasons(t *testing.T) {
	l, m := stormy(t, scrape.Options{})
	res, err := Judge(t.Context(), compiled(t, "{name: g, expr: 'max(process_open_fds)', max: 42}"), &rundir.Recorded{Archive: l.Archive(), Measurements: m})
	if err != nil || res.Verdict != result.Pass || res.Reasons == nil || len(res.Reasons) != 0 {
		t.Errorf("%s, reasons %#v (%v)", res.Verdict, res.Reasons, err)
	}
}

// The value of an expression is shown in the unit of its bound.
func TestUnitOfAnExpression(t *testing.T) {
	l, m := stormy(t, scrape.Options{})
	a := l.Archive()
	for bound, want := range map[string]string{"50ms": "seconds", "5%": "ratio", "100MB": "bytes", "2/h": "per hour", "50/s": "per second", "5": "", "0": ""} {
		if g := judged(t, "{name: g, expr: 'max(process_open_fds)', max: "+bound+"}", a, m); g.Unit != want {
			t.Errorf("max: %s: the unit is %q, want %q", bound, g.Unit, want)
		}
	}
}

// None of these cases may pass, and each gives the reason.
func TestNoDataOfScrapedObjectives(t *testing.T) {
	const mutating, fsync = "{name: g, objective: mutating-latency, max: 1h, over: [storm]}", "{name: g, objective: wal-fsync, max: 1h, over: [storm]}"
	expr := func(e string) string { return "{name: g, expr: '" + e + "', max: 1e9, over: [storm]}" }
	t.Run("healthy run", func(t *testing.T) {
		l, m := stormy(t, scrape.Options{})
		a := l.Archive()
		for what, c := range map[string]struct{ gate, why string }{
			"NaN":                          {expr("0 / (0 * max(process_open_fds))"), "the expression returns no number"},
			"infinity":                     {expr("1 / (0 * max(process_open_fds))"), "infinite"},
			"empty vector":                 {expr("process_open_fds > 1e9"), "a comparison removed all series, or 0 is divided by 0) in storm"},
			"metric that is nowhere":       {expr("max(etcd_no_such_metric)"), "etcd_no_such_metric was not recorded"},
			"metrics that are nowhere":     {expr("max(etcd_no_such_metric) + max(etcd_nor_this) or vector(0)"), "etcd_no_such_metric was not recorded"},
			"one that is nowhere":          {expr("max(etcd_no_such_metric) or 0 * max(process_open_fds)"), "etcd_no_such_metric was not recorded"},
			"a job that is nowhere":        {expr(`sum(increase(apiserver_request_total{job="apiserver", code="429"}[$window])) or vector(0)`), "apiserver was not scraped"},
			"jobs that are nowhere":        {expr(`sum(up{job=~"api.*"}) or vector(0)`), `no scraped target has job=~"api.*"`},
			"a label that it has not":      {expr(`sum(increase(apiserver_request_total{cluster="prod", code="429"}[$window])) or vector(0)`), "no series of apiserver_request_total has a label cluster"},
			"a target that is nowhere":     {expr(`count(up{instance="etcd-7"} == 0) or vector(0)`), `no target matches up{instance="etcd-7"}`},
			"of a target that is nowhere":  {expr(`count(process_open_fds{instance="etcd-7"} > 100) or vector(0)`), `no target matches up{instance="etcd-7"}`},
			"of a target of another job":   {expr(`count(process_open_fds{job="etcd", instance="kube-apiserver-0"} > 100) or vector(0)`), `no target matches up{instance="kube-apiserver-0",job="etcd"}`},
			"several series":               {expr("process_open_fds"), "returns 6 series instead of one (aggregate them, for example with max or sum) in storm"},
			"does not evaluate":            {expr("process_open_fds + on(job) group_left process_open_fds"), "many-to-many"},
			"no observations":              {"{name: g, objective: mutating-latency, max: 1h, over: [calm]}", "nothing was measured in calm"},
			"none in one of those named":   {"{name: g, objective: mutating-latency, max: 1h, over: [calm, storm]}", "nothing was measured in calm"},
			"past the last bucket":         {"{name: g, objective: list-latency, max: 90s, over: [storm]}", "the true value is 60 s or more"},
			"scheduler never placed a pod": {"{name: g, objective: scheduling-latency, max: 1h, over: [calm]}", "nothing was measured in calm"},
		} {
			expect(t, what, judged(t, c.gate, a, m), result.NoData, 0, c.why)
		}
		// The reason is given once for all phases.
		expect(t, "several series, everywhere", judged(t, "{name: g, expr: process_open_fds, max: 1}", a, m), result.NoData, 0,
			"the expression returns 6 series instead of one (aggregate them, for example with max or sum) in calm, storm, recovery")
		// A component certainly exposes this metric, but it had nothing to count yet. A labelled series may appear
		// later.
		expect(t, "no event yet", judged(t, expr("sum(increase(apiserver_admission_webhook_fail_open_count[$window])) or 0 * sum(up)"), a, m), result.Pass, 0,
			"apiserver_admission_webhook_fail_open_count had no series yet")
		expect(t, "no such code yet", judged(t, expr(`sum(increase(apiserver_request_total{code="503"}[$window])) or vector(0)`), a, m), result.Pass, 0, "")
		expect(t, "no archive", judged(t, mutating, nil, m), result.NoData, 0, "no archive")
		expect(t, "phase never reached", judged(t, mutating, a, result.Measurements{Phases: m.Phases[:1]}), result.NoData, 0, "phase storm was never reached")
		cut := result.Measurements{Phases: append([]result.Phase{}, m.Phases...)}
		cut.Phases[1].Interrupted = true
		expect(t, "phase interrupted", judged(t, mutating, a, cut), result.NoData, 0, "phase storm was interrupted")
		off := result.Measurements{Phases: append([]result.Phase{}, m.Phases...)}
		off.Phases[1].End = off.Phases[1].End.Add(time.Second / 2)
		expect(t, "no scrape at the boundary", judged(t, mutating, a, off), result.NoData, 0, "kube-apiserver-0 was not scraped at the boundaries of storm")
		// An observed breach stands even if other data is missing.
		seen := judged(t, "{name: g, objective: mutating-latency, max: 1ms, over: [storm, recovery]}", a, result.Measurements{Phases: m.Phases[:2]})
		expect(t, "breach before the end", seen, result.Fail, 0.78, "storm")
	})
	t.Run("dropped metric", func(t *testing.T) {
		l, m := stormy(t, scrape.Options{Drop: []string{"apiserver_request_sli_duration_seconds"}})
		expect(t, "dropped", judged(t, mutating, l.Archive(), m), result.NoData, 0, "apiserver_request_sli_duration_seconds_bucket was not recorded")
	})
	during := func(name string, do func(l *archivetest.Lab), why string, gates ...string) {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, scrape.Options{})
			for _, c := range []string{"etcd-0", "etcd-1"} {
				l.Parts[c].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.001, 10)
			}
			p := l.Phase("storm", func() {
				l.Parts["etcd-0"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.001, 10)
				do(l)
			})
			a := l.Archive()
			for _, g := range gates {
				expect(t, g, judged(t, g, a, result.Measurements{Phases: []result.Phase{p}}), result.NoData, 0, why)
			}
		})
	}
	both := []string{fsync, expr("max(increase(etcd_disk_wal_fsync_duration_seconds_count[$window]))")}
	during("two scrapes lost", func(l *archivetest.Lab) {
		l.Parts["etcd-1"].SetDown(true)
		l.Boundary(time.Second)
		l.Boundary(time.Second)
		l.Parts["etcd-1"].SetDown(false)
	}, "a scrape of etcd-1 was lost in storm", both...)
	during("the last scrapes lost", func(l *archivetest.Lab) { l.Parts["etcd-1"].SetDown(true) }, "a scrape of etcd-1 was lost in storm", both...)
	during("component restarted", func(l *archivetest.Lab) { l.Parts["etcd-1"].Restart() }, "etcd-1 restarted in storm", both...)
}
