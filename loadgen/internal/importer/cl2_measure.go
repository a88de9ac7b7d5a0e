package importer

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// cl2Measurement is a measurement that a step has started.
type cl2Measurement struct {
	item   *item
	method string
	params *fields
	from   int // index of the first phase after the start of the measurement
}

// call is one use of a measurement in a step. ClusterLoader2 usually starts a measurement in one step and gathers its
// results in a later one. The parameters of the later use override those given at the start.
type call struct {
	*fields         // parameters of the step
	own     *fields // parameters of one entry in instances; nil without instances
	start   *fields // nil if no call started the measurement
	item    *item
	id      string
	from    int // index of the first phase after the start
}

// param returns the parameters that contain key: own, else the step's parameters, else start. If none of them contains
// key, it returns the step's parameters.
func (m call) param(key string) *fields {
	for _, f := range []*fields{m.own, m.fields, m.start} {
		if f != nil && f.has(key) {
			return f
		}
	}
	return m.fields
}

func (m call) text(key, otherwise string) string { return m.param(key).text(key, otherwise) }
func (m call) duration(key string, otherwise time.Duration) time.Duration {
	return m.param(key).duration(key, otherwise)
}
func (m call) number(key string) float64            { return m.param(key).number(key, 0) }
func (m call) flag(key string, otherwise bool) bool { return m.param(key).flag(key, otherwise) }

// leave marks all parameters as used.
func (m call) leave() {
	for _, f := range []*fields{m.own, m.fields, m.start} {
		if f != nil {
			f.leave()
		}
	}
}

func (m call) at(key string) Remark { return m.param(key).at(key) }

// measure converts the measurements of a step. Because they run in parallel, the conditions that they wait for are
// combined into one phase.
func (c *cl2) measure(step string, all []*fields) {
	var waits []string
	var within time.Duration
	for _, f := range all {
		method, params := f.text("method", ""), f.sub("params")
		instances := f.list("instances")
		if len(instances) == 0 {
			instances = []*fields{nil}
		}
		for _, instance := range instances {
			m := call{fields: params, id: f.text("identifier", method)}
			if instance != nil {
				m.own, m.id = instance.sub("params"), instance.text("identifier", method)
			}
			w, d := c.measurement(method, m)
			waits = append(waits, w...)
			within = max(within, d)
		}
	}
	c.waitPhase(step, waits, within)
}

// measurement converts one call. It returns the conditions that the call waits for, and the timeout of the wait.
func (c *cl2) measurement(method string, m call) (waits []string, within time.Duration) {
	key := method + "/" + m.id
	known := c.measurements[key]
	if known == nil {
		known = &cl2Measurement{item: c.item(), method: method, params: m.fields}
		if m.own != nil {
			known.params = m.fields.src.fieldsOf(merged(m.fields.node, m.own.node), m.own.path)
		}
		c.measurements[key] = known
	} else {
		m.start = known.params
	}
	m.item, m.from = known.item, known.from
	action := m.text("action", "gather")
	if !slices.Contains([]string{"start", "gather", "reset", "stop"}, action) && c.supported(method) {
		m.src.fail(m.param("action").get("action"), m.param("action").field("action"), "%s has no action %q (start or gather)", method, action)
	}
	if action == "start" && !waitsAtOnce(method) {
		known.params, known.from = m.fields, len(c.phases)
		if m.own != nil {
			known.params = m.fields.src.fieldsOf(merged(m.fields.node, m.own.node), m.own.path)
		}
		if !c.supported(method) {
			c.unsupported(method, m)
		}
		return nil, 0
	}
	if c.supported(method) && method != "TestMetrics" {
		defer ignoreParams(m)
	}
	switch method {
	case "WaitForControlledPodsRunning":
		return c.controlled(m), m.duration("operationTimeout", 10*time.Minute)
	case "WaitForFinishedJobs":
		return c.conditionsOf(m, "jobs.batch", conditionTest("Complete", "True")+" || "+conditionTest("Failed", "True")), m.duration("timeout", 10*time.Minute)
	case "WaitForRunningPods":
		return c.counted(m, "pods", `status.phase == "Running"`, "desiredPodCount"), m.duration("timeout", time.Minute)
	case "WaitForNodes":
		return c.nodeCount(m), m.duration("timeout", 30*time.Minute)
	case "WaitForGenericK8sObjects":
		return c.generic(m), m.duration("timeout", 30*time.Minute)
	case "WaitForBoundPVCs":
		return c.counted(m, "persistentvolumeclaims", `status.phase == "Bound"`, "desiredPVCCount"), m.duration("timeout", 5*time.Minute)
	case "PodStartupLatency":
		c.podStartup(m)
	case "APIResponsivenessPrometheus", "APIResponsiveness":
		c.responsiveness(m)
	case "SchedulingThroughput":
		c.throughput(m)
	case "SchedulingMetrics", "PrometheusSchedulingMetrics":
		c.figure(m, flow("name", "scheduling-latency", "objective", "scheduling-latency"))
	case "EtcdMetrics":
		c.figure(m, flow("name", "wal-fsync", "objective", "wal-fsync"))
	case "TestMetrics":
		c.figure(m, flow("name", "wal-fsync", "objective", "wal-fsync"))
		c.figure(m, flow("name", "scheduling-latency", "objective", "scheduling-latency"))
		m.leave()
		if id := "method " + method; !c.told[id] {
			c.told[id] = true
			m.item.remark(nil, m.fields.at(""), "its parts EtcdMetrics and SchedulingMetrics become rows of compare, and the report shows the resource usage of components; profiles, and the restarts and memory of system pods, are not measured")
		}
	case "JobLifecycleLatency":
		t := flow("name", "job-complete")
		if of := c.selectorOf(m); len(of) > 0 {
			t = flow("name", unique(m.id, c.gateSet), "resource", "jobs.batch", "selector", selector(of), "to", "complete")
		}
		c.transition(t)
	case "GenericPrometheusQuery":
		c.queries(m)
	case "Sleep":
		c.pause(m.id, m.duration("duration", 0))
	case "Timer": // a run measures the length of each phase anyway
	default:
		c.unsupported(method, m)
	}
	return nil, 0
}

// merged returns a mapping with the fields of base and over. If both have a key, it takes the field of over.
func merged(base, over *yaml.Node) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, n := range []*yaml.Node{over, base} {
		if n != nil && n.Kind == yaml.MappingNode {
			m.Line = n.Line
			m.Content = append(m.Content, n.Content...) // readers use the first field with a key
		}
	}
	return m
}

func (c *cl2) supported(method string) bool {
	switch method {
	case "WaitForControlledPodsRunning", "WaitForFinishedJobs", "WaitForRunningPods", "WaitForNodes", "WaitForBoundPVCs", "PodStartupLatency",
		"APIResponsivenessPrometheus", "APIResponsiveness", "SchedulingThroughput", "SchedulingMetrics", "PrometheusSchedulingMetrics", "EtcdMetrics",
		"JobLifecycleLatency", "GenericPrometheusQuery", "Sleep", "Timer", "WaitForGenericK8sObjects", "TestMetrics":
		return true
	}
	return false
}

// waitsAtOnce reports whether a measurement with this method waits in every call, even if the action is start.
func waitsAtOnce(method string) bool {
	switch method {
	case "WaitForRunningPods", "WaitForNodes", "WaitForBoundPVCs", "WaitForGenericK8sObjects":
		return true
	}
	return false
}

// ignoreParams marks the parameters of a call that need no conversion: they set how results are written or how often to poll, or
// other calls of the measurement read them.
func ignoreParams(m call) {
	for _, f := range []*fields{m.own, m.fields, m.start} {
		if f == nil {
			continue
		}
		f.ignore("action", "metricName", "metricVersion", "unit", "dimensions", "summaryName", "useSimpleLatencyQuery", "refreshInterval", "syncTimeout",
			"checkIfPodsAreUpdated", "apiVersion", "kind", "labelSelector", "operationTimeout", "timeout", "threshold", "enableViolations", "label", "prometheusClient",
			"measurmentInterval", "schedulerName", "allowedSlowCalls", "customThresholds", "singleResourceThreshold", "queries", "perc50Threshold", "perc90Threshold", "perc99Threshold")
	}
}

// unsupported adds a remark that a measurement is not supported, once for each measurement identifier.
func (c *cl2) unsupported(method string, m call) {
	if id := "method " + method + m.id; !c.told[id] {
		c.told[id] = true
		what := method
		if m.id != method {
			what += " (" + m.id + ")"
		}
		c.lose("measurement", what)
		c.all.measurements = append(c.all.measurements, what)
		m.item.remark(nil, m.fields.at(""), "%s is not measured", what)
	}
	m.leave()
}
