package importer

import (
	"slices"
	"time"
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
	*fields // parameters of an entry in instances, if any, then of the step, then of the call that started the measurement
	item    *item
	id      string
	from    int // index of the first phase after the start
}

// measure converts the measurements of a step. Because they run in parallel, the conditions that they wait for are
// combined into one phase.
func (c *cl2) measure(step string, all []*fields) {
	var waits []string
	var within time.Duration
	for _, f := range all {
		method, params := f.text("method", ""), f.sub("params")
		id := f.text("identifier", method)
		var calls []call
		for _, instance := range f.list("instances") {
			own := params
			if of := instance.sub("params"); of.node != nil {
				own = of.over(params)
			}
			calls = append(calls, call{fields: own, id: instance.text("identifier", method)})
		}
		if len(calls) == 0 {
			calls = []call{{fields: params, id: id}}
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
	of, supported := cl2Methods()[method]
	params := m.fields
	key := method + "/" + m.id
	known := c.measurements[key]
	if known == nil {
		known = &cl2Measurement{item: c.item(), params: params}
		c.measurements[key] = known
	} else {
		m.fields = params.over(known.params)
	}
	m.item, m.from = known.item, known.from
	action := m.text("action", "gather")
	if !slices.Contains([]string{"start", "gather", "reset", "stop"}, action) && supported {
		m.fail("action", "%s has no action %q (start or gather)", method, action)
	}
	starts := action == "start" && !of.always
	if starts {
		known.params, known.from = params, len(c.phases)
	}
	if !supported {
		c.unsupported(method, m)
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
	// These set how results are written or how often to poll, or other calls of the measurement read them.
	m.ignore("action", "metricName", "metricVersion", "unit", "dimensions", "summaryName", "useSimpleLatencyQuery", "refreshInterval", "syncTimeout",
		"checkIfPodsAreUpdated", "apiVersion", "kind", "labelSelector", "operationTimeout", "timeout", "threshold", "enableViolations", "label", "prometheusClient",
		"measurmentInterval", "schedulerName", "allowedSlowCalls", "customThresholds", "singleResourceThreshold", "queries", "perc50Threshold", "perc90Threshold", "perc99Threshold")
	return waits, within
}

// cl2Method describes how the measurements with one method are converted.
type cl2Method struct {
	convert func(*cl2, call)          // nil: nothing to convert
	wait    func(*cl2, call) []string // returns the conditions that a call waits for; nil: it does not wait
	timeout string                    // the parameter with the time limit of the wait
	limit   time.Duration             // the default of this parameter
	always  bool                      // calls with the action start wait, too
}

// cl2Methods returns the methods that are supported.
func cl2Methods() map[string]cl2Method {
	counted := func(resource, test, key string) func(*cl2, call) []string {
		return func(c *cl2, m call) []string { return c.counted(m, resource, test, key) }
	}
	figure := func(name string) func(*cl2, call) {
		return func(c *cl2, m call) { c.figure(m, flow("name", name, "objective", name)) }
	}
	return map[string]cl2Method{
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
		"SchedulingMetrics":            {convert: figure("scheduling-latency")},
		"PrometheusSchedulingMetrics":  {convert: figure("scheduling-latency")},
		"EtcdMetrics":                  {convert: figure("wal-fsync")},
		"TestMetrics":                  {convert: (*cl2).testMetrics},
		"JobLifecycleLatency":          {convert: (*cl2).jobLatency},
		"GenericPrometheusQuery":       {convert: (*cl2).queries},
		"Sleep":                        {convert: func(c *cl2, m call) { c.pause(m.id, m.duration("duration", 0)) }},
		"Timer":                        {}, // a run measures the length of each phase anyway
	}
}

// unsupported adds a remark that a measurement is not supported, once for each measurement identifier.
func (c *cl2) unsupported(method string, m call) {
	if c.first("method " + method + m.id) {
		what := method
		if m.id != method {
			what += " (" + m.id + ")"
		}
		c.lose("measurement", what)
		c.all.measurements = append(c.all.measurements, what)
		m.item.remark(nil, m.at(""), "%s is not measured", what)
	}
	m.leave()
}
