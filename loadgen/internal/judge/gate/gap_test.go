package gate

import (
	"fmt"
	"slices"
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

// TestGaps checks the values of counters with a gap in their scrapes.
func TestGaps(t *testing.T) {
	of := func(instance string, known time.Duration) fitness {
		f := fitness{instance: instance, known: known * time.Second, window: time.Minute}
		if !f.whole() {
			f.fault = "kill"
		}
		return f
	}
	whole, most, half, little := of("kube-apiserver-0", 60), of("kube-apiserver-0", 40), of("kube-apiserver-0", 30), of("kube-apiserver-0", 29)
	other, etcd, lost := of("kube-apiserver-1", 60), of("etcd-0", 60), fitness{instance: "etcd-0", why: "a scrape was lost"}
	rules := []gapRule{gapEach, gapShared, gapCount, gapCountSeenByAll, gapAgainst}
	for name, c := range map[string]struct {
		targets []fitness
		want    []string // the result of each rule
	}{
		"no target was away":                 {[]fitness{whole, etcd}, []string{"judged", "judged", "judged", "judged", "judged"}},
		"for a short time":                   {[]fitness{most, etcd}, []string{"noted", "noted", "at least", "at least", "noted"}},
		"for half of it":                     {[]fitness{half}, []string{"noted", "noted", "at least", "at least", "noted"}},
		"for more than half":                 {[]fitness{little, etcd}, []string{"no data", "no data", "at least", "at least", "noted"}},
		"another was there":                  {[]fitness{little, other}, []string{"no data", "noted", "at least", "noted", "noted"}},
		"another was there for most of it":   {[]fitness{little, of("kube-apiserver-1", 40)}, []string{"no data", "no data", "at least", "at least", "noted"}},
		"a scrape was lost for no fault":     {[]fitness{most, lost}, []string{"no data", "no data", "no data", "no data", "no data"}},
		"both, in turn":                      {[]fitness{most, of("kube-apiserver-1", 40)}, []string{"noted", "noted", "at least", "at least", "noted"}},
		"away for all of it, another is not": {[]fitness{of("kube-apiserver-0", 0), other}, []string{"no data", "noted", "at least", "noted", "noted"}},
	} {
		for i, rule := range rules {
			why, notes, atLeast := rule.gaps(c.targets, "storm")
			got := "judged"
			switch {
			case why != "":
				got = "no data"
			case atLeast:
				got = "at least"
			case len(notes) > 0:
				got = "noted"
			}
			if got != c.want[i] {
				t.Errorf("%s, rule %q: %s, want %s (%q %q)", name, rule, got, c.want[i], why, notes)
			}
			if atLeast && len(notes) == 0 {
				t.Errorf("%s, rule %q: no note gives the reason", name, rule)
			}
		}
	}
}

// If a process was unreachable, an alert on its metrics that did not fire is judged by the same rules as a value of
// these metrics.
func TestGapsOfSilentAlerts(t *testing.T) {
	for until, c := range map[int]struct {
		verdict result.Verdict
		detail  string
	}{
		30: {result.Pass, "the counts of etcd-1 cover 40 s of 60 s (kill)"},
		50: {result.NoData, "the counts of etcd-1 in storm cover only 20 s of 60 s (kill)"},
	} {
		rec := awayLab(t, "kill", until, "etcd-1")
		res, err := Judge(t.Context(), compiled(t, "{name: g, alert: EtcdLeaderChanges, fires: false, over: [storm]}"), rec)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "away until "+fmt.Sprint(until), res.Gates[0], c.verdict, 0, c.detail)
	}
	// An alert that fired is a fact, so the gap needs no note.
	rules, err := alerting.Parse("mine.yaml", []byte(`
groups:
  - {name: mine, interval: 15s, rules: [{alert: Away, expr: 'up{job="etcd"} == 0 or process_open_fds{job="etcd"} > 50'}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	rec := awayLab(t, "kill", 50, "etcd-1")
	for fires, verdict := range map[string]result.Verdict{"true": result.Pass, "false": result.Fail} {
		gates, err := CompileWith(plan.Of(parse(t, "{name: g, alert: Away, fires: "+fires+"}")), &rules)
		if err != nil {
			t.Fatal(err)
		}
		res, err := Judge(t.Context(), gates, rec)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "fires: "+fires, res.Gates[0], verdict, 1, "after the start of storm")
		if strings.Contains(res.Gates[0].Detail, "known for") {
			t.Errorf("fires: %s: %s", fires, res.Gates[0].Detail)
		}
	}
}

// awayLab records a run of one phase of a minute, scraped every ten seconds. A fault of the given kind makes the named
// instances unreachable from the scrape at 20 s to the scrape at until.
func awayLab(t *testing.T, kind string, until int, names ...string) *rundir.Recorded {
	t.Helper()
	l := archivetest.New(t, scrape.Options{}, "etcd-0", "etcd-1", "kube-apiserver-0", "kube-apiserver-1", "kube-scheduler-0", "kube-controller-manager-0", "loadgen")
	work := func() {
		for name, c := range l.Parts {
			c.Add("process_cpu_seconds_total", 1)
			switch {
			case strings.HasPrefix(name, "kube-apiserver"):
				c.Observe("apiserver_request_sli_duration_seconds", `verb="PATCH",resource="nodes",scope="resource"`, apiEdges, 0.03, 100)
				c.Add(`apiserver_request_total{code="200"}`, 100)
			case strings.HasPrefix(name, "etcd"):
				c.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.0015, 100)
				c.Add("etcd_server_leader_changes_seen_total", 0)
			}
		}
	}
	work()
	l.Boundary(time.Second)
	p := result.Phase{Name: "storm", Start: l.Boundary(time.Second), Until: "nodesNotReady", ConditionMet: true}
	down := func(is bool) {
		for _, name := range names {
			l.Parts[name].SetDown(is)
		}
	}
	for at := 10; at <= 60; at += 10 {
		work()
		if down(20 <= at && at < until); kind == "kill" && at == until {
			for _, name := range names {
				l.Parts[name].Restart()
			}
			work()
		}
		p.End = l.Boundary(10 * time.Second)
	}
	rec := &rundir.Recorded{Measurements: result.Measurements{Phases: []result.Phase{p}}}
	after := func(s float64) time.Time { return p.Start.Add(time.Duration(s * float64(time.Second))) }
	rec.Timeline = []result.Event{
		{Time: after(15), Kind: "fault-begin", Name: kind, Fault: "1", On: names},
		{Time: after(float64(until) - 5), Kind: "fault-end", Fault: "1"},
	}
	for _, name := range names {
		if kind == "kill" {
			rec.Timeline = append(rec.Timeline, result.Event{Time: after(15), Kind: "exit", Name: name, Expected: true},
				result.Event{Time: after(float64(until) - 1), Kind: "ready", Name: name})
		}
	}
	rec.Archive = l.Archive()
	return rec
}

// A gate over a phase in which an instance was killed is judged by the observed data, and its detail says so. It does
// not pass if too little was observed, or if a count may be too low.
func TestGatesWhereAnInstanceWasAway(t *testing.T) {
	const (
		mutating = "objective: mutating-latency, max: 1s"
		refused  = "objective: too-many-requests, max: 0"
		fsync    = "objective: wal-fsync, max: 10ms"
		changes  = "objective: leader-changes, max: 0"
		cpu      = "objective: generator-cpu, max: 50%"
		expr     = `expr: 'max(increase(apiserver_request_total{code="200"}[$window]))', min: 100`
	)
	type want struct {
		gate    string
		verdict result.Verdict
		detail  string
	}
	for name, c := range map[string]struct {
		kind  string
		until int
		away  []string
		want  []want
	}{
		"an API server, for a short time": {"kill", 30, []string{"kube-apiserver-0"}, []want{
			{mutating, result.Pass, "the counts of kube-apiserver-0 cover 40 s of 60 s (kill)"},
			{refused, result.NoData, "storm: the true value is 0 or more, so it is not known whether it meets the bound (the counts of kube-apiserver-0 cover 40 s of 60 s (kill))"},
			{expr, result.Pass, "the counts of kube-apiserver-0 cover 40 s of 60 s (kill)"},
			{cpu, result.Pass, "the counts of kube-apiserver-0 cover 40 s of 60 s (kill)"},
			{fsync, result.Pass, "observations"},
		}},
		"an API server, for most of it": {"kill", 50, []string{"kube-apiserver-0"}, []want{
			{mutating, result.Pass, "the counts of kube-apiserver-0 cover 20 s of 60 s (kill)"},
			{expr, result.NoData, "the counts of kube-apiserver-0 in storm cover only 20 s of 60 s (kill)"},
			{cpu, result.Pass, "20 s of 60 s"},
		}},
		"all API servers, for most of it": {"kill", 50, []string{"kube-apiserver-0", "kube-apiserver-1"}, []want{
			{mutating, result.NoData, "the counts of kube-apiserver-0 in storm cover only 20 s of 60 s (kill)"},
		}},
		"a member of etcd, for most of it": {"kill", 50, []string{"etcd-0"}, []want{
			{fsync, result.NoData, "the counts of etcd-0 in storm cover only 20 s of 60 s (kill)"},
			{changes, result.Pass, "the counts of etcd-0 cover 20 s of 60 s (kill)"}, // the other instance has counted them
		}},
		"all of etcd, for a short time": {"kill", 30, []string{"etcd-0", "etcd-1"}, []want{
			{fsync, result.Pass, "40 s of 60 s"},
			{changes, result.NoData, "0/h or more"},
		}},
		"a pause loses nothing": {"pause", 50, []string{"kube-apiserver-0", "kube-apiserver-1"}, []want{
			{mutating, result.Pass, "kube-apiserver-0 did not answer for part of the time (pause), but its counts are complete"},
			{refused, result.Pass, "its counts are complete"},
			{expr, result.Pass, "its counts are complete"},
		}},
		"to the end":                  {"kill", 70, []string{"kube-apiserver-0"}, []want{{mutating, result.Pass, "10 s of 60 s (kill)"}, {expr, result.NoData, "cover only 10 s of 60 s"}}},
		"a slow link loses no scrape": {"networkDelay", 40, []string{"kube-apiserver-0"}, []want{{mutating, result.NoData, "a scrape of kube-apiserver-0 was lost in storm"}}},
		"nor does a partition":        {"partition", 40, []string{"etcd-0"}, []want{{fsync, result.NoData, "a scrape of etcd-0 was lost in storm"}}},
		"one lost scrape is one sample": {"networkDelay", 30, []string{"kube-apiserver-0"}, []want{
			{mutating, result.Pass, "scrapes of kube-apiserver-0 lost in storm: 1, no two in a row"},
			{refused, result.Pass, "lost in storm: 1"},
			{expr, result.Pass, "lost in storm: 1"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rec := awayLab(t, c.kind, c.until, c.away...)
			for _, w := range c.want {
				res, err := Judge(t.Context(), compiled(t, "{name: g, "+w.gate+", over: [storm]}"), rec)
				if err != nil {
					t.Fatal(err)
				}
				if g := res.Gates[0]; g.Verdict != w.verdict || !strings.Contains(g.Detail, w.detail) {
					t.Errorf("%s: %s, %q; want %s, %q", w.gate, g.Verdict, g.Detail, w.verdict, w.detail)
				}
			}
		})
	}
}

// An incomplete count over its bound fails.
func TestIncompleteCountFails(t *testing.T) {
	rec := awayLab(t, "kill", 30, "kube-apiserver-0")
	c := compiled(t, "{name: g, objective: too-many-requests, max: 0, over: [storm]}")[0]
	c.objective.Expr = strings.ReplaceAll(c.objective.Expr, "429", "200")
	res, err := Judge(t.Context(), []Compiled{c}, rec)
	if err != nil {
		t.Fatal(err)
	}
	if g := res.Gates[0]; g.Verdict != result.Fail || !g.AtLeast || !slices.Equal(res.Reasons, []string{"g: " + show("", *g.Value) + " is over 0"}) {
		t.Errorf("%s, at least: %v, %q", g.Verdict, g.AtLeast, res.Reasons)
	}
}
