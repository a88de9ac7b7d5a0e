package gate

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// oneSlow is a distribution of n values: one took a second, the rest 2 ms.
func oneSlow(n int64) result.Latency {
	h := latency.New(time.Minute)
	h.RecordN(2*time.Millisecond, n-1)
	h.Record(time.Second)
	return h.Latency()
}

// A gate does not pass if a larger part of the samples breaks the bound than its quantile allows. With few samples, a
// single one is enough.
func TestQuantilesOfFewSamplesAreTheirMaximum(t *testing.T) {
	for _, c := range []struct {
		n         int64
		p99, p999 result.Verdict
	}{
		{1, result.Fail, result.Fail}, {51, result.Fail, result.Fail}, {99, result.Fail, result.Fail},
		{100, result.Pass, result.Fail}, {500, result.Pass, result.Fail}, {999, result.Pass, result.Fail}, {1000, result.Pass, result.Pass},
	} {
		m := told()
		slow := oneSlow(c.n)
		m.Phases[1].Watches[0].Delivery = slow
		m.Phases[1].Watches[0].External = slow
		for objective, want := range map[string]result.Verdict{"watch-delivery": c.p99, "watch-delivery-p999": c.p999} {
			if g := judged(t, "{name: g, objective: "+objective+", max: 10ms, over: [storm]}", nil, m); g.Verdict != want {
				t.Errorf("%s of %d samples, one over the bound: %s, want %s (%s)", objective, c.n, g.Verdict, want, g.Detail)
			}
		}
	}
}

// The p99 that a run of an older version recorded may ignore the slowest sample.
func TestRoundedQuantileOfAnOldRunIsNotTrusted(t *testing.T) {
	m := told()
	m.Phases[1].Workload.Startup = result.Latency{Count: 60, P50: 0.5, P99: 2, P999: 2, Max: 9}
	g := judged(t, "{name: g, objective: pod-startup, max: 5s, over: [storm]}", nil, m)
	expect(t, "one of 60 pods took 9 s", g, result.Fail, 9, "60 samples: too few for the p99 (it needs 100), so the value is the maximum")
	m.Phases[1].Workload.Startup.Max = 4
	g = judged(t, "{name: g, objective: pod-startup, max: 5s, over: [storm]}", nil, m)
	expect(t, "the slowest of 60 pods took 4 s", g, result.Pass, 4, "60 samples: too few for the p99")
}

// With few observations, Prometheus interpolates within the bucket of the slowest one. A gate whose bound is inside
// that bucket does not pass.
func TestScrapedQuantilesOfFewObservations(t *testing.T) {
	const metric = "etcd_disk_wal_fsync_duration_seconds"
	for _, c := range []struct {
		observations float64
		max          string
		want         result.Verdict
		detail       string
	}{
		{60, "16ms", result.Pass, "p99 between 8 ms and 16 ms (slowest of 60 observations by etcd)"},
		{60, "13ms", result.NoData, "if the slowest observation is at the upper edge of its bucket, the value is 16 ms, which is over 13 ms"},
		{60, "10ms", result.Fail, "60 observations"},
		{99, "13ms", result.NoData, "too few observations for the quantile (a p99 needs 100)"},
		{101, "13ms", result.Pass, "p99 between 0 s and 1 ms (101 observations by etcd)"},
	} {
		l := newLab(t, scrape.Options{})
		for _, name := range []string{"etcd-0", "etcd-1"} {
			l.Parts[name].Observe(metric, "", fsyncEdges, 0.001, 10)
		}
		p := l.Phase("storm", func() { fewFsyncs(l, c.observations) })
		a, m := l.Archive(), result.Measurements{Phases: []result.Phase{p}}
		quantile := func(of string) string { return "histogram_quantile(0.99, sum by (instance, le) (" + of + "))" }
		for what, gate := range map[string]string{
			"the objective":       "objective: wal-fsync",
			"of an increase":      "expr: 'max(" + quantile("increase("+metric+"_bucket[$window])") + ")'",
			"of a rate":           "expr: 'max(" + quantile("rate("+metric+"_bucket[$window])") + ") or vector(9)'",
			"a share of it":       "expr: '2 * max(" + quantile("rate("+metric+"_bucket[$window])") + ") / 2'",
			"inside another call": "expr: 'max(clamp_min(" + quantile("rate("+metric+"_bucket[$window])") + ", 0))'",
		} {
			g := judged(t, "{name: g, "+gate+", max: "+c.max+", over: [storm]}", a, m)
			if g.Verdict != c.want {
				t.Errorf("%s, %v observations, max %s: %s, %q; want %s", what, c.observations, c.max, g.Verdict, g.Detail, c.want)
			}
			if what == "the objective" {
				expect(t, what, result.Gate{Verdict: g.Verdict, Detail: g.Detail, Value: g.Value}, c.want, valueOf(g), c.detail)
			}
		}
	}
}

func valueOf(g result.Gate) float64 {
	if g.Value == nil {
		return 0
	}
	return *g.Value
}

// fewFsyncs records n fsyncs of etcd-1. One takes 12 ms. All other fsyncs take 1 ms, also on etcd-0.
func fewFsyncs(l *archivetest.Lab, n float64) {
	for _, name := range []string{"etcd-0", "etcd-1"} {
		l.Parts[name].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.001, n-1)
	}
	l.Parts["etcd-1"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.012, 1)
	l.Parts["etcd-0"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.001, 200)
}
