package importer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// podStartup adds a transition from a pod's first observation to its Running phase, and a gate for each threshold of
// its duration.
func (c *cl2) podStartup(m call) {
	name := nameOf(m.id)
	c.transition(block("name", name, "resource", "pods", "selector", selector(c.selectorOf(m)), "to", "jsonpath={.status.phase}=Running"))
	whole := m.duration("threshold", 5*time.Second)
	for _, q := range []struct {
		param    string
		quantile float64
	}{{"perc50Threshold", 0.5}, {"perc90Threshold", 0.9}, {"perc99Threshold", 0.99}} {
		bound := m.duration(q.param, whole)
		if q.quantile != 0.99 && bound >= m.duration("perc99Threshold", whole) {
			continue // implied by the threshold of the 99th percentile
		}
		g := c.row(fmt.Sprintf("%s-p%g", name, 100*q.quantile), "objective", "transition-latency", "transition", name)
		c.judge(m, true, g.add("quantile", when(q.quantile != 0.99, q.quantile), "max", bound.String()), false)
	}
}

// jobLatency adds a transition from the creation of a Job to its completion.
func (c *cl2) jobLatency(m call) {
	t := flow("name", "job-complete")
	if of := c.selectorOf(m); len(of) > 0 {
		t = flow("name", unique(m.id, c.gateSet), "resource", "jobs.batch", "selector", selector(of), "to", "complete")
	}
	c.transition(t)
}

// testMetrics adds the comparison rows for the parts of TestMetrics that a run measures.
func (c *cl2) testMetrics(m call) {
	c.figure(m, "wal-fsync")
	c.figure(m, "scheduling-latency")
	m.leave()
	if c.first("method TestMetrics") {
		m.item.remark(nil, m.at(""), "its parts EtcdMetrics and SchedulingMetrics become rows of compare, and the report shows the resource usage of components; profiles, and the restarts and memory of system pods, are not measured")
	}
}

// responsiveness converts a measurement of API call latency. If the measurement enforces thresholds, it becomes gates,
// otherwise rows of the comparison table.
func (c *cl2) responsiveness(m call) {
	single := m.duration("singleResourceThreshold", time.Second).String()
	judged := m.flag("enableViolations", false)
	if slow := m.number("allowedSlowCalls", 0); slow > 0 && judged {
		m.item.remark(nil, m.at("allowedSlowCalls"), "the gates tolerate no slow calls beyond the quantile; ClusterLoader2 tolerates %g for each resource and verb", slow)
	}
	if judged && strings.Trim(m.text("customThresholds", ""), "\"' \n") != "" {
		m.item.remark(nil, m.at("customThresholds"), "the gates apply the same thresholds to all resources")
	}
	for _, one := range [][2]string{{"mutating-latency", single}, {"read-latency", single}, {"list-latency", "30s"}} {
		c.judge(m, judged, c.row(one[0], "objective", one[0]).add("max", when(judged, one[1])), true)
	}
}

// row returns a gate or a row of the comparison table. fields are alternating names and values.
func (c *cl2) row(name string, fields ...any) *mapping {
	return flow(append([]any{"name", unique(name, c.gateSet)}, fields...)...)
}

// figure adds a row with an objective to the comparison table.
func (c *cl2) figure(m call, objective string) {
	c.judge(m, false, c.row(objective, "objective", objective), true)
}

// judge adds a gate or, unless judged is set, a row of the comparison table, for the phases after its measurement was started. If
// together is set, these phases are evaluated together, otherwise each separately. If there are no such phases, judge adds
// a remark instead.
func (c *cl2) judge(m call, judged bool, row *mapping, together bool) {
	c.all.ask(judged, phaseName(row))
	if from, to := m.from, len(c.phases); from < to {
		c.windows = append(c.windows, func() { c.over(row, from, to, together) })
		c.draft.judge(judged, row)
	} else if c.first("nothing " + m.id) {
		m.item.remark(c.lastPhase(), m.at(""), "%s is not measured: no phase runs between its actions start and gather", m.id)
	}
}

// scrapeEvery is the default interval at which a run records metrics.
const scrapeEvery = 5 * time.Second

// throughput adds a gate or a comparison row for the highest rate at which pods are scheduled. The rate is computed
// over an interval of at least two scrapes.
func (c *cl2) throughput(m call) {
	interval := m.duration("measurmentInterval", scrapeEvery) // as ClusterLoader2 spells it
	scrape := min(max(interval, time.Second), scrapeEvery)
	if scrape < scrapeEvery && c.record == nil {
		c.record = flow("interval", scenario.Duration(scrape).String())
	}
	expr := fmt.Sprintf(`max_over_time(sum(rate(scheduler_schedule_attempts_total{result="scheduled"}[%s]))[$window:%s])`,
		scenario.Duration(max(interval, scrape)+scrape), scenario.Duration(scrape))
	of := c.selectorOf(m)
	if slices.ContainsFunc(c.pods, func(p cl2Pods) bool { return p.phase >= m.from && !selects(of, p.labels) }) {
		m.item.remark(c.lastPhase(), m.at("labelSelector"), "the gate also counts pods without %s that the test creates at the same time", selector(of))
	}
	row, bound := c.row("scheduling-throughput", "expr", expr), m.number("threshold", 0)
	judged := bound > 0 && m.flag("enableViolations", true)
	if judged {
		row.set("min", fmt.Sprint(bound))
	} else {
		row.add("unit", "per second", "better", "higher")
	}
	c.judge(m, judged, row, true)
}

// cl2Pods holds the index of a phase and the labels of pods that it creates.
type cl2Pods struct {
	phase  int
	labels map[string]string
}

// queries adds a gate for each Prometheus query with a threshold that the test enforces, and a comparison row for each other
// query.
func (c *cl2) queries(m call) {
	unit := m.text("unit", "")
	var scale cl2Unit
	at := slices.IndexFunc(cl2Units, func(u cl2Unit) bool { return slices.Contains(strings.Split(u.names, " "), unit) })
	if at >= 0 {
		scale = cl2Units[at]
	}
	for _, q := range m.list("queries") {
		name := strings.Join([]string{m.text("metricName", m.id), q.text("name", "")}, "-")
		query := strings.Join(strings.Fields(strings.ReplaceAll(q.text("query", ""), "%v", "$window")), " ")
		g := newMapping()
		first := g.set("name", unique(name, c.gateSet))
		bounded, higher := q.has("threshold"), q.flag("lowerBound", false)
		if bounded && !m.flag("enableViolations", false) {
			bounded = false
			addComment(first, fmt.Sprintf("ClusterLoader2 does not fail at its threshold %g, because enableViolations is off.", q.number("threshold", 0)))
		}
		most := map[bool]string{false: "max", true: "min"}[higher]
		expr := fmt.Sprintf("%s(%s)", most, query)
		switch {
		case scale.per > 1:
			expr = fmt.Sprintf("%s / %g", expr, scale.per)
		case 0 < scale.per && scale.per < 1:
			expr = fmt.Sprintf("%s * %.0f", expr, 1/scale.per)
		}
		if bounded && !q.flag("requireSamples", false) && !higher {
			expr += " or vector(0)"
			addComment(first, "Without a series the value is 0, because requireSamples is off.")
		}
		if at < 0 {
			addComment(first, "Its unit is "+unit+".")
		}
		g.set("expr", expr)
		c.all.ask(bounded, phaseName(g))
		if why := c.refused(g); why != "" {
			m.item.remark(nil, q.at("query"), "gate or figure %s is left out: %s", name, why)
			continue
		}
		if bounded {
			g.set(most, fmt.Sprintf("%g%s", q.number("threshold", 0), scale.suffix))
		} else {
			g.add("unit", string(scale.unit), "better", when(higher, "higher"))
		}
		c.judge(m, bounded, g, true)
	}
}

// cl2Unit maps units of ClusterLoader2's queries, by their names, to a unit of scenarios. per is the number of query units in one
// scenario unit, such as 1000 for ms. suffix is appended to thresholds in the query's unit.
type cl2Unit struct {
	names  string
	unit   scenario.Unit
	per    float64
	suffix string
}

// cl2Units are the units of queries that scenarios support. ClusterLoader2 itself accepts any text as a unit.
var cl2Units = []cl2Unit{
	{" none", "", 0, ""}, {"ratio", scenario.Ratio, 1, ""}, {"% percent percentage", scenario.Ratio, 100, "%"}, {"count", scenario.Count, 1, ""},
	{"s sec second seconds", scenario.Seconds, 1, "s"}, {"ms millisecond milliseconds", scenario.Seconds, 1e3, "ms"},
	{"us microsecond microseconds", scenario.Seconds, 1e6, "us"}, {"1/h /h", scenario.PerHour, 1, "/h"},
	{"1/s /s qps rps ops/s req/s requests/s", scenario.PerSec, 1, "/s"}, {"B byte bytes", scenario.Size, 1, "B"},
	{"KiB", scenario.Size, 1. / 1024, "KiB"}, {"MiB", scenario.Size, 1. / (1 << 20), "MiB"}, {"GiB", scenario.Size, 1. / (1 << 30), "GiB"},
	{"KB kB", scenario.Size, 1e-3, "KB"}, {"MB", scenario.Size, 1e-6, "MB"}, {"GB", scenario.Size, 1e-9, "GB"},
}
