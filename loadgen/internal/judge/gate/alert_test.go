package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// diskRun records a run in which etcd-1 is slow in the storm: 1 minute of calm, 2 of storm and 4 of
// recovery, with a scrape every 5 s.
func diskRun(t *testing.T, o scrape.Options, storm func(l *archivetest.Lab)) (*archivetest.Lab, result.Measurements) {
	t.Helper()
	l := newLab(t, o)
	phase := func(name string, length, slow time.Duration, meanwhile func(l *archivetest.Lab)) result.Phase {
		p := result.Phase{Name: name, Start: l.Boundary(time.Second), ConditionMet: true}
		for at := time.Duration(0); at < length; at += 5 * time.Second {
			l.Parts["etcd-0"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.002, 50)
			l.Parts["etcd-1"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, (2*time.Millisecond + slow).Seconds(), 50)
			p.End = l.Boundary(5 * time.Second)
		}
		if meanwhile != nil {
			meanwhile(l)
			p.End = l.Boundary(5 * time.Second)
		}
		return p
	}
	return l, result.Measurements{Phases: []result.Phase{
		phase("calm", time.Minute, 0, nil),
		phase("storm", 2*time.Minute, 10*time.Millisecond, storm),
		phase("recovery", 4*time.Minute, 0, nil),
	}}
}

// A gate on an alert says when the alert fired and for how long.
func TestAlertGates(t *testing.T) {
	l, m := diskRun(t, scrape.Options{}, nil)
	a := l.Archive()
	for _, c := range []gateCase{
		{"alert: EtcdWALFsyncSlow, fires: true, over: [storm]", result.Pass, 1, "EtcdWALFsyncSlow: fired 73 s after the start of storm, for 2m45s: WAL fsync of etcd-1 is slow"},
		{"alert: EtcdWALFsyncSlow, fires: false, over: [calm]", result.Pass, 0, "did not fire in calm"},
		{"alert: EtcdWALFsyncSlow, fires: false, over: [calm, storm]", result.Fail, 1, "fired 73 s after the start of storm"},
		{"alert: EtcdWALFsyncSlow, fires: false, over: [recovery]", result.Fail, 1, "fired before recovery, and was still firing, for 2m45s"},
		{"alert: EtcdWALFsyncSlow, fires: true, over: [calm]", result.Fail, 0, "did not fire in calm"},
		{"alert: EtcdWALFsyncSlow, fires: true, over: [calm, storm]", result.Pass, 1, "fired 73 s after the start of storm"},
		// An added delay of 10 ms does not make an fsync take over 16 ms.
		{"alert: EtcdWALFsyncVerySlow, fires: false", result.Pass, 0, "did not fire in calm, storm, recovery"},
	} {
		g := judged(t, "{name: g, "+c.gate+"}", a, m)
		expect(t, c.gate, g, c.verdict, c.value, c.detail)
		if g.Objective != "alert" || !strings.Contains(g.Expr, "instance:etcd_disk_wal_fsync") {
			t.Errorf("%s: objective %q, expr %q", c.gate, g.Objective, g.Expr)
		}
	}
}

// A gate on an alert that could not have fired does not pass.
func TestSilentAlertsWithoutData(t *testing.T) {
	quiet := func(alert string) string { return "{name: g, alert: " + alert + ", fires: false, over: [storm]}" }
	t.Run("metrics", func(t *testing.T) {
		l, m := diskRun(t, scrape.Options{}, nil)
		a := l.Archive()
		expect(t, "no archive", judged(t, quiet("EtcdWALFsyncVerySlow"), nil, m), result.NoData, 0, "no archive")
		// A counter that does not exist yet had nothing to count.
		expect(t, "no event yet", judged(t, quiet("WebhookFailingOpen"), a, m), result.Pass, 0, "apiserver_admission_webhook_fail_open_count had no series yet")
		expect(t, "never reached", judged(t, quiet("EtcdWALFsyncVerySlow"), a, result.Measurements{Phases: m.Phases[:1]}), result.NoData, 0, "phase storm was never reached")
		// An observed firing stands.
		expect(t, "seen before the end", judged(t, "{name: g, alert: EtcdWALFsyncSlow, fires: true}", a, result.Measurements{Phases: m.Phases[:2]}), result.Pass, 1, "fired 73 s after the start of storm")
		short := m.Phases[0]
		short.End = short.Start.Add(30 * time.Second)
		expect(t, "too short for it", judged(t, "{name: g, alert: EtcdWALFsyncVerySlow, fires: false, over: [calm]}", a, result.Measurements{Phases: []result.Phase{short}}),
			result.NoData, 0, "EtcdWALFsyncVerySlow cannot fire within 31 s: its for field is 60 s")
	})
	t.Run("dropped", func(t *testing.T) {
		l, m := diskRun(t, scrape.Options{Drop: []string{"etcd_disk_wal_fsync_duration_seconds"}}, nil)
		s := parse(t, quiet("EtcdWALFsyncVerySlow"))
		s.Record.Drop = []string{"etcd_disk_wal_fsync_duration_seconds"}
		gates, err := Compile(plan.Of(s))
		if err != nil {
			t.Fatal(err)
		}
		res, err := Judge(t.Context(), gates, &rundir.Recorded{Archive: l.Archive(), Measurements: m})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "dropped", res.Gates[0], result.NoData, 0, "etcd_disk_wal_fsync_duration_seconds_bucket was not recorded")
	})
	t.Run("two lost scrapes in a row", func(t *testing.T) {
		l, m := diskRun(t, scrape.Options{}, lose(2))
		expect(t, "lost scrapes", judged(t, quiet("EtcdWALFsyncVerySlow"), l.Archive(), m), result.NoData, 0, "a scrape of etcd-1 was lost in storm")
	})
}

// lose loses n consecutive scrapes of etcd-1.
func lose(n int) func(*archivetest.Lab) {
	return func(l *archivetest.Lab) {
		l.Parts["etcd-1"].SetDown(true)
		for range n {
			l.Boundary(5 * time.Second)
		}
		l.Parts["etcd-1"].SetDown(false)
	}
}

// One lost scrape is one sample less: alerts are judged as Prometheus evaluates them, unless the
// lost scrape may have kept an alert silent.
func TestOneLostScrapeLeavesAlertsJudged(t *testing.T) {
	l, m := diskRun(t, scrape.Options{}, lose(1))
	a := l.Archive()
	for _, alert := range []string{"EtcdWALFsyncVerySlow", "EtcdLeaderChanges", "EtcdNoLeader"} {
		g := judged(t, "{name: g, alert: "+alert+", fires: false, over: [storm]}", a, m)
		expect(t, alert, g, result.Pass, 0, "scrapes of etcd-1 lost in storm: 1, no two in a row")
	}
	expect(t, "one that fires", judged(t, "{name: g, alert: EtcdWALFsyncSlow, fires: true, over: [storm]}", a, m), result.Pass, 1, "fired 73 s after the start of storm")
	rules := parseRules(t, `
groups:
  - name: mine
    interval: 1s
    rules:
      - {alert: Pending, expr: 'process_open_fds{job="etcd"} > 40', for: 6m}
      - {alert: Calm, expr: 'process_open_fds{job="etcd"} > 50', for: 1m}
      - {alert: ShortRange, expr: 'rate(process_cpu_seconds_total{job="etcd"}[12s]) > 1e6'}
      - {alert: LongRange, expr: 'rate(process_cpu_seconds_total{job="etcd"}[15s]) > 1e6'}
`)
	for alert, want := range map[string]result.Verdict{
		"Pending":    result.NoData, // its series ended, so the alert had to wait again
		"Calm":       result.Pass,
		"ShortRange": result.NoData, // a single sample was left in the range, which gives no rate
		"LongRange":  result.Pass,
	} {
		gates, err := CompileWith(plan.Of(parse(t, "{name: g, alert: "+alert+", fires: false, over: [storm]}")), &rules)
		if err != nil {
			t.Fatal(err)
		}
		res, err := Judge(t.Context(), gates, &rundir.Recorded{Archive: a, Measurements: m})
		if err != nil {
			t.Fatal(err)
		}
		if g := res.Gates[0]; g.Verdict != want {
			t.Errorf("%s: %s, %q; want %s", alert, g.Verdict, g.Detail, want)
		}
	}
}

// The end of a phase is also a scrape: if it was lost, it is adjacent to the first scrape of the
// next phase.
func TestLostScrapesOnBothSidesOfABoundary(t *testing.T) {
	l := newLab(t, scrape.Options{})
	work := func(n int) (end time.Time) {
		for range n {
			l.Parts["etcd-1"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.002, 50)
			end = l.Boundary(5 * time.Second)
		}
		return end
	}
	start := l.Boundary(time.Second)
	work(30)
	l.Parts["etcd-1"].SetDown(true)
	middle := work(1)
	work(1)
	l.Parts["etcd-1"].SetDown(false)
	end := work(30)
	phases := []result.Phase{{Name: "calm", Start: start, End: middle, ConditionMet: true}, {Name: "storm", Start: middle, End: end, ConditionMet: true}}
	a := l.Archive()
	for _, over := range []string{"calm", "storm"} {
		g := judged(t, "{name: g, alert: EtcdWALFsyncVerySlow, fires: false, over: ["+over+"]}", a, result.Measurements{Phases: phases})
		expect(t, over, g, result.NoData, 0, "a scrape of etcd-1 was lost in "+over)
	}
}

// An alert that fires after its cause says how far it looks back, and into which phase.
func TestAlertTellsHowFarItLooksBack(t *testing.T) {
	l, m := diskRun(t, scrape.Options{}, nil)
	a := l.Archive()
	g := judged(t, "{name: g, alert: EtcdWALFsyncSlow, fires: false, over: [recovery]}", a, m)
	fired := m.Phases[1].Start.Add(73 * time.Second).UTC()
	want := "(fired at " + fired.Format(time.TimeOnly) + "; its rules look back 3m0s, to " + fired.Add(-3*time.Minute).Format(time.TimeOnly) + ", before the first phase)"
	if !strings.Contains(g.Detail, want) {
		t.Errorf("detail %q, want %q in it", g.Detail, want)
	}
	m.Phases[0].Start = m.Phases[1].Start.Add(-2 * time.Minute)
	g = judged(t, "{name: g, alert: EtcdWALFsyncSlow, fires: false, over: [recovery]}", a, m)
	if want := fired.Add(-3*time.Minute).Format(time.TimeOnly) + ", in calm)"; !strings.Contains(g.Detail, want) {
		t.Errorf("detail %q, want %q in it", g.Detail, want)
	}
}

// parseRules reads a rule file.
func parseRules(t *testing.T, text string) alerting.Ruleset {
	t.Helper()
	rules, err := alerting.Parse("mine.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// A user's rules are judged like the shipped ones, and take precedence over them.
func TestAlertsOfOtherRules(t *testing.T) {
	rules := parseRules(t, `
groups:
  - name: mine
    interval: 15s
    rules:
      - {alert: EtcdWALFsyncSlow, expr: 'process_open_fds{job="etcd"} > 1e6'}
      - {alert: Descriptors, expr: 'process_open_fds{job="etcd"} > 40'}
      - {alert: Misspelt, expr: 'etcd_disk_wal_fsync_seconds{job="etcd"} > 40'}
      - {alert: Elsewhere, expr: 'process_open_fds{job="apiserver"} > 40'}
      - {alert: Impossible, expr: 'process_open_fds{job="etcd"} + on (job) process_open_fds{job="etcd"} > 1'}
`)
	l, m := diskRun(t, scrape.Options{}, nil)
	gates, err := Quiet(plan.Of(parse(t, "{name: g, objective: unsent, max: 0%}")), &rules, false)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Judge(t.Context(), gates, &rundir.Recorded{Archive: l.Archive(), Measurements: m})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]result.Gate{}
	for _, g := range res.Gates {
		got[g.Name] = g
	}
	expect(t, "a rule of the same name", got["EtcdWALFsyncSlow"], result.Pass, 0, "did not fire")
	expect(t, "one that fires", got["Descriptors"], result.Fail, 2, "fired before calm, and was still firing at the end of the run")
	expect(t, "a metric that is nowhere", got["Misspelt"], result.NoData, 0, "etcd_disk_wal_fsync_seconds was not recorded")
	expect(t, "a job that is nowhere", got["Elsewhere"], result.NoData, 0, "apiserver was not scraped")
	expect(t, "one that does not evaluate", got["Impossible"], result.NoData, 0, "Impossible cannot be evaluated")
	if res.Verdict != result.Fail || !strings.HasPrefix(res.Reasons[0], "Descriptors: fired before calm") {
		t.Errorf("%s: %q", res.Verdict, res.Reasons)
	}
}

// A gate on an alert does not pass if the rules were not evaluated in time, or use the labels of another monitoring
// system.
func TestUnevaluatedRulesHaveNoData(t *testing.T) {
	rules := parseRules(t, `
groups:
  - name: seldom
    interval: 2m
    rules:
      - {alert: Seldom, expr: 'process_open_fds{job="etcd"} > 50'}
      - {record: 'etcd:fds', expr: 'process_open_fds{job="etcd"}'}
  - name: often
    interval: 15s
    rules:
      - {alert: OfSeldom, expr: 'etcd:fds > 50'}
      - {alert: LongAgo, expr: 'process_open_fds{job="etcd"} offset 1h > 40'}
      - {alert: Namespaced, expr: 'process_open_fds{job="etcd", namespace="kube-system"} > 40'}
      - {alert: NoSuchJobs, expr: 'up{job=~"kube-etcd.*"} == 0'}
      - {alert: NoSuchTarget, expr: 'up{job="etcd", instance="10.0.0.1:2379"} == 0'}
  - name: behind
    interval: 15s
    query_offset: 10m
    rules:
      - {alert: Behind, expr: 'process_open_fds{job="etcd"} > 40'}
`)
	l, m := diskRun(t, scrape.Options{}, nil)
	a := l.Archive()
	for _, c := range []struct {
		alert, over string
		verdict     result.Verdict
		detail      string
	}{
		// Rounds are at 0, 2, 4 and 6 minutes; calm is the first minute, storm the two after.
		{"Seldom", "calm", result.NoData, "Seldom was not evaluated in calm: it is evaluated every 2m0s"},
		{"OfSeldom", "calm", result.NoData, "OfSeldom was not evaluated in calm"},
		{"Seldom", "storm", result.Pass, "did not fire in storm"},
		{"Seldom", "calm, storm", result.Pass, "did not fire in calm, storm"},
		{"LongAgo", "storm", result.NoData, "LongAgo cannot fire within 3m2s: its expression reads the last 1h0m0s"},
		{"Behind", "storm", result.NoData, "its expression reads the last 10m0s"},
		{"Namespaced", "storm", result.NoData, "no series of process_open_fds has a label namespace"},
		{"NoSuchJobs", "storm", result.NoData, `no scraped target has job=~"kube-etcd.*"`},
		{"NoSuchTarget", "storm", result.NoData, `no target matches up{instance="10.0.0.1:2379",job="etcd"}`},
	} {
		gates, err := CompileWith(plan.Of(parse(t, "{name: g, alert: "+c.alert+", fires: false, over: ["+c.over+"]}")), &rules)
		if err != nil {
			t.Fatal(err)
		}
		res, err := Judge(t.Context(), gates, &rundir.Recorded{Archive: a, Measurements: m})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.alert+" in "+c.over, res.Gates[0], c.verdict, 0, c.detail)
	}
}

func TestInvalidAlertGates(t *testing.T) {
	_, err := Compile(plan.Of(parse(t, "{name: g, alert: EtcdWalFsyncSlow, fires: false}")))
	want := `lab.yaml:19: gates.g.alert: unknown alert "EtcdWalFsyncSlow" (did you mean "EtcdWALFsyncSlow"?)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	s := parse(t, "{name: g, alert: TargetDown, fires: false}", "{name: h, alert: EtcdLeaderChanges, fires: true}")
	gates, err := Compile(plan.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	if lacks := gates[1].Lacks([]string{"kube-apiserver"}); len(lacks) != 1 || lacks[0] != "etcd" {
		t.Errorf("without etcd's metrics, the rule lacks %v", lacks)
	}
	if names := Families(plan.Of(s)); !strings.Contains(strings.Join(names, " "), "etcd_server_leader_changes_seen_total") {
		t.Errorf("what the gates read is not recorded: %v", names)
	}
}

// A disk that is slow for 18 s makes EtcdWALFsyncSlow fire a minute after it is fast again, because
// of the rule's range.
func TestAlertAfterItsCause(t *testing.T) {
	l := newLab(t, scrape.Options{})
	phase := func(name string, length, slow time.Duration) result.Phase {
		p := result.Phase{Name: name, Start: l.Boundary(time.Second), ConditionMet: true}
		for at := time.Duration(0); at < length; at += 2 * time.Second {
			took := 0.002
			if at < slow {
				took = 0.017
			}
			l.Parts["etcd-1"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, took, 40)
			p.End = l.Boundary(2 * time.Second)
		}
		return p
	}
	m := result.Measurements{Phases: []result.Phase{
		phase("calm", 4*time.Minute, 0), phase("storm", 22*time.Second, 18*time.Second), phase("recovery", 90*time.Second, 0),
	}}
	g := judged(t, "{name: g, alert: EtcdWALFsyncSlow, fires: false, over: [recovery]}", l.Archive(), m)
	if g.Verdict != result.Fail || !strings.Contains(g.Detail, "after the start of recovery") || !strings.Contains(g.Detail, "its rules look back 3m0s, to ") || !strings.Contains(g.Detail, ", in calm)") {
		t.Errorf("%s: %q", g.Verdict, g.Detail)
	}
}
