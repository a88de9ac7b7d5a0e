package importer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// burnTransitions returns the transitions that replace a kube-burner measurement. byCondition maps a condition in the
// thresholds of the measurement to the name of its transition.
func burnTransitions(measurement string) (all []*mapping, byCondition map[string]string) {
	byCondition = map[string]string{}
	add := func(condition string, transition *mapping) {
		all = append(all, transition)
		byCondition[condition] = phaseName(transition)
	}
	switch measurement {
	case "podLatency":
		add("PodScheduled", flow("name", "pod-scheduled"))
		add("Initialized", flow("name", "pod-initialized"))
		add("ContainersReady", flow("name", "pod-containers-ready"))
		add("Ready", flow("name", "pod-ready"))
	case "jobLatency":
		add("Complete", flow("name", "job-complete"))
	case "pvcLatency":
		add("Bound", flow("name", "pvc-bound"))
	case "serviceLatency":
		all = []*mapping{flow("name", "service-endpoints")}
	case "nodeLatency": // kube-burner measures nodes that are added during a job
		for _, condition := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
			add(condition, flow("name", "node-"+nameOf(condition), "resource", "nodes", "to", "condition="+condition+"=False"))
		}
		add("Ready", flow("name", "node-ready", "resource", "nodes", "to", "ready"))
	}
	return all, byCondition
}

// measurement converts a measurement of a job or, if j is nil, of all jobs.
func (b *burner) measurement(f *fields, j *burnJob) {
	name := f.text("name", "")
	b.all.measurements = append(b.all.measurements, name)
	f.ignore("quantilesIndexer", "timeseriesIndexer")
	if name == "pprof" {
		if j == nil { // the phases of a job contain its own profiles
			b.profiles = append(b.profiles, b.pprof(b.item(), f))
		}
		return
	}
	item := b.item()
	transitions, byCondition := burnTransitions(name)
	switch {
	case name == "serviceLatency":
		item.remark(nil, f.at("name"), "the measured latency ends when an EndpointSlice of the Service has a ready endpoint, not when real pods connect to it")
		f.ignore("svcTimeout")
	case transitions == nil:
		why := ""
		if name == "netpolLatency" {
			why = ": it measures connections between real pods"
		}
		b.lose("measurement", name)
		item.remark(nil, f.at("name"), "%s is not measured%s", name, why)
		f.ignore("thresholds", "svcTimeout")
	}
	for _, t := range transitions {
		b.transition(t)
	}
	for _, t := range f.list("thresholds") {
		b.all.gates[t.at("").place()] = true
		if transitions == nil {
			t.leave()
			continue
		}
		b.threshold(item, t, byCondition, j)
	}
}

// transition adds a transition, unless one with the same name was added before.
func (d *draft) transition(m *mapping) {
	if !slices.ContainsFunc(d.transitions, func(t *mapping) bool { return phaseName(t) == phaseName(m) }) {
		d.transitions = append(d.transitions, m)
	}
}

// threshold adds a gate for a latency threshold.
func (b *burner) threshold(item *item, f *fields, byCondition map[string]string, j *burnJob) {
	condition, metric := f.text("conditionType", ""), f.text("metric", "")
	q, known := map[string]float64{"P99": 0.99, "P95": 0.95, "P50": 0.5, "Max": 1}[metric]
	transition := byCondition[condition]
	if !known || transition == "" {
		item.remark(nil, f.at(""), "no gate: there is no %s of %s", metric, condition)
		return
	}
	g := block("name", unique(fmt.Sprintf("%s-%s", transition, metric), b.gateSet), "objective", "transition-latency", "transition", transition,
		"quantile", when(q != 0.99, q), "max", f.duration("threshold", time.Second).String())
	if j != nil {
		var over []string
		for _, p := range b.phases {
			if name := phaseName(p); name == nameOf(j.name) || strings.HasPrefix(name, nameOf(j.name)+"-") {
				over = append(over, name)
			}
		}
		g.set("over", over)
	}
	b.gates = append(b.gates, g)
}

// endpoints reads the metrics endpoints. It converts the alert and metrics profiles that the endpoints and the options
// name.
func (b *burner) endpoints() {
	kinds := []profileKind{{"metrics", "metrics profile", b.metric, b.options.Metrics}, {"alerts", "alert profile", b.alert, b.options.Alerts}}
	for _, f := range b.root.list("metricsEndpoints") {
		item := b.item()
		// A run stores in its own directory what a local indexer would store.
		indexer := f.sub("indexer")
		indexer.ignore("metricsDirectory", "createTarball", "tarballName")
		if kind := indexer.text("type", ""); f.has("indexer") && kind != "local" {
			indexer.leave()
			item.remark(nil, f.at("indexer"), "nothing is indexed in %s: metrics and results are in the run's directory", cmp.Or(kind, "another system"))
		}
		if url := f.text("endpoint", ""); url != "" {
			item.remark(nil, f.at("endpoint"), "the run scrapes its components itself; to judge by this Prometheus: loadgen run --kubeconfig FILE --prometheus %s", url)
		}
		f.ignore("step", "skipTLSVerify", "token", "username", "password", "alias")
		for _, kind := range kinds {
			for _, file := range f.texts(kind.key) {
				b.profile(kind, f.at(kind.key), file)
			}
		}
	}
	for _, kind := range kinds {
		for _, file := range kind.more {
			b.item()
			whole, _ := filepath.Abs(file)
			b.profile(kind, Remark{File: file}, cmp.Or(whole, file))
		}
	}
}
