package importer

import (
	"fmt"
	"regexp"
	"strings"
	"time"
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
			c.gates = append(c.gates, flow("name", one[0], "objective", one[0], "max", one[1]))
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

const scheduled = `sum(rate(scheduler_schedule_attempts_total{result="scheduled"}[10s]))`

// throughput is the highest rate of scheduled pods.
func (c *cl2) throughput(m call) {
	expr := "max_over_time(" + scheduled + "[$window:5s])"
	if bound := m.number("threshold", 0); bound > 0 && m.flag("enableViolations", true) {
		c.gates = append(c.gates, flow("name", unique("scheduling-throughput", c.gateSet), "expr", expr, "min", fmt.Sprint(bound)))
		return
	}
	c.figure(flow("name", "scheduling-throughput", "expr", expr, "unit", "per second", "better", "higher"))
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
	}
}
