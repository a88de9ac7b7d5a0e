package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// podStartup is a transition from the first sight of a pod until it runs, with a gate for each bound.
func (c *cl2) podStartup(m call) {
	name := nameOf(m.id)
	t := newMapping()
	t.set("name", name)
	t.set("resource", "pods")
	if of := c.selectorOf(m); len(of) > 0 {
		t.set("selector", selector(of))
	}
	t.set("to", "jsonpath={.status.phase}=Running")
	c.transition(t)
	whole := m.duration("threshold", 5*time.Second)
	for _, q := range []struct {
		param    string
		quantile float64
	}{{"perc50Threshold", 0.5}, {"perc90Threshold", 0.9}, {"perc99Threshold", 0.99}} {
		bound := m.duration(q.param, whole)
		if q.quantile != 0.99 && bound >= m.duration("perc99Threshold", whole) {
			continue // the bound of the 99th percentile holds for it
		}
		g := flow("name", unique(fmt.Sprintf("%s-p%g", name, 100*q.quantile), c.gateSet), "objective", "transition-latency", "transition", name)
		if q.quantile != 0.99 {
			g.set("quantile", q.quantile)
		}
		g.set("max", bound.String())
		c.gates = append(c.gates, g)
	}
}

// responsiveness are the objectives of calls of the API.
func (c *cl2) responsiveness(m call) {
	single := m.duration("singleResourceThreshold", time.Second).String()
	judged := m.flag("enableViolations", false)
	if slow := m.number("allowedSlowCalls", 0); slow > 0 && judged {
		m.item.remark(nil, m.at("allowedSlowCalls"), "no slow call of a resource and verb is allowed beyond its quantile, and not %g", slow)
	}
	if judged && strings.Trim(m.text("customThresholds", ""), "\"' \n") != "" {
		m.item.remark(nil, m.at("customThresholds"), "all resources have the same bounds")
	}
	for _, one := range [][2]string{{"mutating-latency", single}, {"read-latency", single}, {"list-latency", "30s"}} {
		if !judged {
			c.figure(flow("name", one[0], "objective", one[0]))
			continue
		}
		if !c.gateSet[one[0]] {
			c.gateSet[one[0]] = true
			g := flow("name", one[0], "objective", one[0], "max", one[1])
			c.gates = append(c.gates, g)
			c.since(g, m)
		}
	}
}

// figure adds a row of the table of variants, once.
func (c *cl2) figure(m *mapping) {
	for _, f := range c.compare {
		if phaseName(f) == phaseName(m) {
			return
		}
	}
	c.compare = append(c.compare, m)
}

// scrapeEvery is the interval at which a run records metrics, unless it is said.
const scrapeEvery = 5 * time.Second

// throughput is the highest rate of scheduled pods, over intervals of some length: two scrapes lie so far apart.
func (c *cl2) throughput(m call) {
	interval := m.duration("measurmentInterval", scrapeEvery) // as ClusterLoader2 spells it
	scrape := min(max(interval, time.Second), scrapeEvery)
	if scrape < scrapeEvery && c.record == nil {
		c.record = flow("interval", scenario.Duration(scrape).String())
	}
	expr := fmt.Sprintf(`max_over_time(sum(rate(scheduler_schedule_attempts_total{result="scheduled"}[%s]))[$window:%s])`,
		scenario.Duration(max(interval, scrape)+scrape), scenario.Duration(scrape))
	if of := c.selectorOf(m); c.makesOthers(m.from, of) {
		m.item.remark(c.lastPhase(), m.at("labelSelector"), "pods without %s count too, which the test makes at the same time", selector(of))
	}
	if bound := m.number("threshold", 0); bound > 0 && m.flag("enableViolations", true) {
		g := flow("name", unique("scheduling-throughput", c.gateSet), "expr", expr, "min", fmt.Sprint(bound))
		c.gates = append(c.gates, g)
		c.since(g, m)
		return
	}
	c.figure(flow("name", "scheduling-throughput", "expr", expr, "unit", "per second", "better", "higher"))
}

// cl2Pods is the labels of pods that a phase makes.
type cl2Pods struct {
	phase  int
	labels map[string]string
}

// makesOthers reports whether phases from a number on make pods that a selector does not select.
func (c *cl2) makesOthers(from int, of map[string]string) bool {
	return slices.ContainsFunc(c.pods, func(p cl2Pods) bool { return p.phase >= from && !selects(of, p.labels) })
}

// since notes that a gate judges the phases from a measurement's start to now, as one window.
func (c *cl2) since(gate *mapping, m call) {
	c.windows = append(c.windows, cl2Window{gate, burnSpan{from: m.from, to: len(c.phases)}})
}

// cl2Window is the phases that a gate judges.
type cl2Window struct {
	gate *mapping
	span burnSpan
}

var percentV = regexp.MustCompile(`%v`)

// queries adds a gate for each query with a bound, and a figure for the others.
func (c *cl2) queries(m call) {
	for _, q := range m.param("queries").list("queries") {
		name := strings.Join([]string{m.text("metricName", m.id), q.text("name", "")}, "-")
		query := strings.Join(strings.Fields(percentV.ReplaceAllString(q.text("query", ""), "$$window")), " ")
		g := newMapping()
		first := g.set("name", unique(name, c.gateSet))
		bounded := q.has("threshold")
		most := "max"
		if q.flag("lowerBound", false) {
			most = "min"
		}
		expr := fmt.Sprintf("%s(%s)", most, query)
		if bounded && !q.flag("requireSamples", false) && most == "max" {
			expr += " or vector(0)"
			addComment(first, "No series is 0, as requireSamples is off.")
		}
		g.set("expr", expr)
		if why := c.refused(g); why != "" {
			m.item.remark(nil, q.at("query"), "no gate or figure %s: %s", name, why)
			continue
		}
		if !bounded {
			c.compare = append(c.compare, g)
			continue
		}
		g.set(most, fmt.Sprint(q.number("threshold", 0)))
		c.gates = append(c.gates, g)
		c.since(g, m)
	}
}
