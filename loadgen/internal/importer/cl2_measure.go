package importer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// cl2Measurement is a measurement that a step has started.
type cl2Measurement struct {
	item   *item
	params *fields
	from   int // index of the first phase after the start of the measurement
}

// call is one use of a measurement in a step. ClusterLoader2 usually starts a measurement in one step and gathers its
// results in a later one. The parameters of the later use override those given at the start.
type call struct {
	*fields // the parameters; an instance overrides the step, which overrides the call that started the measurement
	*cl2Measurement
	id string
}

// measure converts the measurements of a step. They run in parallel, so measure combines the conditions that they wait
// for into one phase.
func (c *cl2) measure(step string, all []*fields) {
	var waits []string
	var within time.Duration
	for _, f := range all {
		method, params := f.text("method", ""), f.sub("params")
		calls := []call{{fields: params, id: f.text("identifier", method)}}
		for i, instance := range f.list("instances") {
			m := call{fields: params, id: instance.text("identifier", method)}
			if own := instance.sub("params"); own.node != nil {
				m.fields = own.over(params)
			}
			calls = append(calls[:i], m) // the first instance replaces the call of the step itself
		}
		for _, m := range calls {
			w, d := c.measurement(method, m)
			waits = append(waits, w...)
			within = max(within, d)
		}
	}
	c.waitPhase(step, waits, within)
}

// measurement converts one call. It returns the conditions that the call waits for, and the timeout of the wait.
func (c *cl2) measurement(method string, m call) (waits []string, within time.Duration) {
	of, supported := cl2Methods[method]
	params := m.fields
	key := method + "/" + m.id
	known := c.measurements[key]
	if known == nil {
		known = &cl2Measurement{item: c.item(), params: params}
		c.measurements[key] = known
	} else {
		m.fields = params.over(known.params)
	}
	m.cl2Measurement = known
	action := m.text("action", "gather")
	if !slices.Contains([]string{"start", "gather", "reset", "stop"}, action) && supported {
		m.fail("action", "%s has no action %q (start or gather)", method, action)
	}
	starts := action == "start" && !of.always
	if starts {
		known.params, known.from = params, len(c.phases)
	}
	if !supported {
		if what := strings.TrimSuffix(method+" ("+m.id+")", " ("+method+")"); c.first(known) {
			c.lose("measurement", what)
			c.all.measurements = append(c.all.measurements, what)
			m.item.remark(nil, m.at(""), "%s is not measured", what)
		}
		m.leave()
	}
	if starts || !supported {
		return nil, 0
	}
	if of.convert != nil {
		of.convert(c, m)
	}
	if of.wait != nil {
		waits, within = of.wait(c, m), m.duration(of.timeout, of.limit)
	}
	// These parameters set how to write results or how often to poll, or other calls of the measurement read them.
	m.ignore("action", "metricName", "metricVersion", "unit", "dimensions", "summaryName", "useSimpleLatencyQuery", "refreshInterval", "syncTimeout",
		"checkIfPodsAreUpdated", "apiVersion", "kind", "labelSelector", "operationTimeout", "timeout", "threshold", "enableViolations", "label", "prometheusClient",
		"measurmentInterval", "schedulerName", "allowedSlowCalls", "customThresholds", "singleResourceThreshold", "queries", "perc50Threshold", "perc90Threshold", "perc99Threshold")
	return waits, within
}

// cl2Method describes how to convert the measurements with one method.
type cl2Method struct {
	convert func(*cl2, call)          // converts a call; nil: there is nothing to convert
	wait    func(*cl2, call) []string // returns the conditions that a call waits for; nil: calls do not wait
	timeout string                    // name of the parameter with the time limit of the wait
	limit   time.Duration             // default time limit of the wait
	always  bool                      // whether calls with the action `start` also wait
}

// figureOf returns a function that adds a row with the given objective to the scenario's comparison table.
func figureOf(objective string) func(*cl2, call) {
	return func(c *cl2, m call) { c.figure(m, objective) }
}

// cl2Methods holds the supported methods, by name.
var cl2Methods = map[string]cl2Method{
	"WaitForControlledPodsRunning": {wait: (*cl2).controlled, timeout: "operationTimeout", limit: 10 * time.Minute},
	"WaitForFinishedJobs":          {wait: (*cl2).finishedJobs, timeout: "timeout", limit: 10 * time.Minute},
	"WaitForRunningPods":           {wait: counted("pods", `status.phase == "Running"`, "desiredPodCount"), timeout: "timeout", limit: time.Minute, always: true},
	"WaitForNodes":                 {wait: (*cl2).nodeCount, timeout: "timeout", limit: 30 * time.Minute, always: true},
	"WaitForGenericK8sObjects":     {wait: (*cl2).generic, timeout: "timeout", limit: 30 * time.Minute, always: true},
	"WaitForBoundPVCs":             {wait: counted("persistentvolumeclaims", `status.phase == "Bound"`, "desiredPVCCount"), timeout: "timeout", limit: 5 * time.Minute, always: true},
	"PodStartupLatency":            {convert: (*cl2).podStartup},
	"APIResponsivenessPrometheus":  {convert: (*cl2).responsiveness},
	"APIResponsiveness":            {convert: (*cl2).responsiveness},
	"SchedulingThroughput":         {convert: (*cl2).throughput},
	"SchedulingMetrics":            {convert: figureOf("scheduling-latency")},
	"PrometheusSchedulingMetrics":  {convert: figureOf("scheduling-latency")},
	"EtcdMetrics":                  {convert: figureOf("wal-fsync")},
	"TestMetrics":                  {convert: (*cl2).testMetrics},
	"JobLifecycleLatency":          {convert: (*cl2).jobLatency},
	"GenericPrometheusQuery":       {convert: (*cl2).queries},
	"Sleep":                        {convert: func(c *cl2, m call) { c.pause(m.id, m.duration("duration", 0)) }},
	"Timer":                        {}, // a run measures the length of each phase anyway
}

// selectorOf returns the labels for which the measurement's label selector requires one value. It ignores all other
// requirements of the selector, and adds a remark about each.
func (c *cl2) selectorOf(m call) map[string]string {
	text := m.text("labelSelector", "")
	all := map[string]string{}
	s, err := labels.Parse(text)
	if err != nil {
		m.item.remark(c.lastPhase(), m.at("labelSelector"), "all objects are counted, because %q is not a label selector", text)
		return nil
	}
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		if values := r.Values().List(); len(values) == 1 && (r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In) {
			all[r.Key()] = values[0]
			continue
		}
		m.item.remark(c.lastPhase(), m.at("labelSelector"), "the condition also counts objects that do not match %q: a scenario supports only equality", r.String())
	}
	return all
}

// notAwaited records that the run does not wait for the objects of a measurement, because of the parameter `key`.
// `what` is a format that names the objects and the reason.
func (c *cl2) notAwaited(m call, key, what string, args ...any) {
	c.lose("measurement", m.id)
	m.item.remark(c.lastPhase(), m.at(key), "the run does not wait for %s", fmt.Sprintf(what, args...))
}

// finishedJobs returns the condition for WaitForFinishedJobs: all Jobs are complete or have failed.
func (c *cl2) finishedJobs(m call) []string {
	c.asked.waits = append(c.asked.waits, "jobs.batch")
	return []string{allOf("jobs.batch", c.selectorOf(m), conditionTest("Complete", "True")+" || "+conditionTest("Failed", "True"))}
}

// controlled returns the conditions for WaitForControlledPodsRunning: the pods of all controllers of a kind are
// running. If the test has deleted all these controllers, they and their pods must be gone.
func (c *cl2) controlled(m call) []string {
	kind := m.text("kind", "")
	resource := builtin.ResourceOf(m.text("apiVersion", ""), kind)
	of := c.selectorOf(m)
	test := readyTest(kind)
	if kind == "Job" {
		test = "(has(o.status.ready) ? o.status.ready : 0) + (has(o.status.succeeded) ? o.status.succeeded : 0) >= o.spec.parallelism"
	}
	wanted := len(c.asked.waits)
	c.asked.waits = append(c.asked.waits, resource)
	if test == "" || !celName.MatchString(resource) {
		c.notAwaited(m, "kind", "the pods of a %s", kind)
		return nil
	}
	if updated := updatedTest(kind); updated != "" && m.flag("checkIfPodsAreUpdated", true) {
		test = fmt.Sprintf("o.status.observedGeneration == o.metadata.generation && %s && (%s)", updated, test)
	}
	left := 0
	for key, made := range c.latest {
		if made.kind() == kind && selects(of, made.labels) {
			left += c.replicas[key]
		}
	}
	if left > 0 {
		return []string{allOf(resource, of, test)}
	}
	c.asked.waits[wanted] = "no " + resource
	gone := []string{noneOf(resource, of)}
	for key, made := range c.latest {
		if made.kind() == kind && c.replicas[key] == 0 && len(of) > 0 && selects(of, made.podLabels()) {
			c.asked.waits = append(c.asked.waits, "no pods")
			return append(gone, noneOf("pods", of))
		}
	}
	return gone
}

// counted returns a function for cl2Method.wait. Its condition is that at least n objects of a resource pass the CEL
// test. n is the value of the parameter `key`. If n is 0, the condition is that no object exists.
func counted(resource, test, key string) func(*cl2, call) []string {
	return func(c *cl2, m call) []string {
		want, of := int(m.number(key, 0)), c.selectorOf(m)
		if want == 0 {
			c.asked.waits = append(c.asked.waits, "no "+resource)
			return []string{noneOf(resource, of)}
		}
		c.asked.waits = append(c.asked.waits, resource)
		return []string{fmt.Sprintf("%s >= %d", countOf(resource, of, test), want)}
	}
}

// nodeCount returns the conditions for WaitForNodes: the number of nodes is in a range.
func (c *cl2) nodeCount(m call) []string {
	c.asked.waits = append(c.asked.waits, "nodes")
	count, of := "nodes.size()", c.selectorOf(m)
	if len(of) > 0 {
		count = countOf("nodes", of)
	}
	all := []string{fmt.Sprintf("%s >= %d", count, int(m.number("minDesiredNodeCount", 0)))}
	if m.has("maxDesiredNodeCount") {
		all = append(all, fmt.Sprintf("%s <= %d", count, int(m.number("maxDesiredNodeCount", 0))))
	}
	return all
}

// generic returns the conditions for WaitForGenericK8sObjects. A minimum number of objects must have a successful or
// failed condition, and at most a maximum number a failed one. Without such conditions, all objects count.
func (c *cl2) generic(m call) []string {
	m.ignore("objectGroup", "objectVersion", "objectResource", "successfulConditions", "failedConditions", "minDesiredObjectCount", "maxFailedObjectCount")
	r := m.sub("namespaceRange")
	from, to, own := r.integer("min", 1), r.integer("max", c.namespaces), r.has("basename")
	if from > 1 || to < c.namespaces || own {
		m.item.remark(c.lastPhase(), m.at("namespaceRange"), "objects in all namespaces of the run count, not only those in namespaces %d to %d", from, to)
	}
	resource := strings.TrimSuffix(m.text("objectResource", "")+"."+m.text("objectGroup", ""), ".")
	c.asked.waits = append(c.asked.waits, resource)
	switch {
	case !celName.MatchString(resource):
		c.notAwaited(m, "objectResource", "these objects: a condition cannot contain the resource name %s", resource)
		return nil
	case builtin.IsCustom(resource) && !c.options.OwnCluster:
		c.notAwaited(m, "objectResource", "these objects: a bundled control plane has no controller of %s", resource)
		return nil
	}
	tests := func(key string) (all []string) {
		for _, one := range m.texts(key) {
			kind, status, _ := strings.Cut(one, "=")
			all = append(all, strings.Replace(conditionTest(kind, status), "o.status", "status", 1))
		}
		return all
	}
	succeeded, failed, of := tests("successfulConditions"), tests("failedConditions"), c.selectorOf(m)
	count := func(tests []string) string {
		if len(tests) == 0 {
			return countOf(resource, of)
		}
		return countOf(resource, of, "("+strings.Join(tests, " || ")+")")
	}
	waits := []string{fmt.Sprintf("%s >= %d", count(append(succeeded, failed...)), int(m.number("minDesiredObjectCount", 0)))}
	if len(failed) > 0 {
		waits = append(waits, fmt.Sprintf("%s <= %d", count(failed), int(m.number("maxFailedObjectCount", 0))))
	}
	return waits
}

// podStartup adds a transition (a measured duration) from a pod's first observation to its Running phase, and a gate
// for each threshold of this duration.
func (c *cl2) podStartup(m call) {
	name := nameOf(m.id)
	c.transition(block("name", name, "resource", "pods", "selector", selector(c.selectorOf(m)), "to", "jsonpath={.status.phase}=Running"))
	whole := m.duration("threshold", 5*time.Second)
	for _, quantile := range []float64{0.5, 0.9, 0.99} {
		bound := m.duration(fmt.Sprintf("perc%gThreshold", 100*quantile), whole)
		if quantile != 0.99 && bound >= m.duration("perc99Threshold", whole) {
			continue // implied by the threshold of the 99th percentile
		}
		g := c.row(fmt.Sprintf("%s-p%g", name, 100*quantile), "objective", "transition-latency", "transition", name)
		c.judge(m, true, g.add("quantile", when(quantile != 0.99, quantile), "max", bound.String()), false)
	}
}

// jobLatency adds a transition (a measured duration) from the creation of a Job to its completion.
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

// responsiveness converts a measurement of API call latency. If the measurement enforces thresholds, it becomes gates.
// Otherwise it becomes rows of the comparison table.
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

// row returns a gate or a row of the comparison table, with the given name. fields are alternating names and values.
func (c *cl2) row(name string, fields ...any) *mapping {
	return flow(append([]any{"name", unique(name, c.gateSet)}, fields...)...)
}

// figure adds a row with an objective to the scenario's comparison table.
func (c *cl2) figure(m call, objective string) {
	c.judge(m, false, c.row(objective, "objective", objective), true)
}

// judge adds row to the gates if `judged` is set, and otherwise to the comparison table. The run evaluates it over the
// phases after the start of the measurement: together if `together` is set, and otherwise each separately. Without such
// phases, judge adds a remark instead.
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
	if slices.ContainsFunc(c.made, func(o madeObjects) bool {
		return o.phase >= m.from && podSpec(o.kind()) != nil && !selects(of, o.podLabels())
	}) {
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

// queries adds a gate for each Prometheus query with a threshold that the test enforces, and a comparison row for every
// other query.
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

// cl2Unit converts a unit of ClusterLoader2's queries to a unit of scenarios. names lists the unit's names in queries,
// separated by spaces. per is the number of query units in one scenario unit, such as 1000 for ms. suffix is appended
// to thresholds in the query's unit.
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
