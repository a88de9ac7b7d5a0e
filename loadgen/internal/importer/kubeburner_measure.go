package importer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/userfile"
)

// burnTransitions returns the transitions that replace a kube-burner measurement. byCondition maps a condition in the
// thresholds of the measurement to the name of its transition.
func burnTransitions(measurement string) (all []*mapping, byCondition map[string]string) {
	named := func(names ...string) {
		for _, name := range names {
			all = append(all, flow("name", name))
		}
	}
	switch measurement {
	case "podLatency":
		named("pod-scheduled", "pod-initialized", "pod-containers-ready", "pod-ready")
		return all, map[string]string{
			"PodScheduled": "pod-scheduled", "Initialized": "pod-initialized", "ContainersReady": "pod-containers-ready", "Ready": "pod-ready",
		}
	case "jobLatency":
		named("job-complete")
		return all, map[string]string{"Complete": "job-complete"}
	case "pvcLatency":
		named("pvc-bound")
		return all, map[string]string{"Bound": "pvc-bound"}
	case "serviceLatency":
		named("service-endpoints")
	case "nodeLatency": // kube-burner measures nodes that are added during a job
		byCondition = map[string]string{}
		for _, condition := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
			name := "node-" + nameOf(condition)
			all = append(all, flow("name", name, "resource", "nodes", "to", "condition="+condition+"=False"))
			byCondition[condition] = name
		}
		all = append(all, flow("name", "node-ready", "resource", "nodes", "to", "ready"))
		byCondition["Ready"] = "node-ready"
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
		b.lose("measurement", name)
		item.remark(nil, f.at("name"), "%s is not measured%s", name, instead(name))
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

func instead(measurement string) string {
	if measurement == "netpolLatency" {
		return ": it measures connections between real pods"
	}
	return ""
}

// transition adds a transition, unless one with the same name was added before.
func (d *draft) transition(m *mapping) {
	for _, t := range d.transitions {
		if phaseName(t) == phaseName(m) {
			return
		}
	}
	d.transitions = append(d.transitions, m)
}

// quantiles returns the quantile, from 0 to 1, for each metric name in kube-burner's latency thresholds.
func quantiles() map[string]float64 {
	return map[string]float64{"P99": 0.99, "P95": 0.95, "P50": 0.5, "Max": 1}
}

// threshold adds a gate for a latency threshold.
func (b *burner) threshold(item *item, f *fields, byCondition map[string]string, j *burnJob) {
	condition, metric := f.text("conditionType", ""), f.text("metric", "")
	q, known := quantiles()[metric]
	transition := byCondition[condition]
	if !known || transition == "" {
		item.remark(nil, f.at(""), "no gate: there is no %s of %s", metric, condition)
		return
	}
	g := newMapping()
	g.set("name", unique(fmt.Sprintf("%s-%s", transition, metric), b.gateSet))
	g.set("objective", "transition-latency")
	g.set("transition", transition)
	if q != 0.99 {
		g.set("quantile", q)
	}
	g.set("max", f.duration("threshold", time.Second).String())
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
	read := map[string]bool{}
	profile := func(item *item, at Remark, file string, add func(src *source, root *yaml.Node)) {
		if read[file] {
			return
		}
		read[file] = true
		name := file
		if !filepath.IsAbs(file) {
			name = filepath.Join(b.dir, file)
		}
		data, err := userfile.Read(name, userfile.Text)
		if err != nil {
			at.Text = fmt.Sprintf("cannot read %s: %v (paths are relative to the configuration's directory)", file, err)
			b.src.errs = append(b.src.errs, fmt.Errorf("%s", at))
			return
		}
		src := b.source(name)
		root, err := src.parse(data)
		switch {
		case err != nil:
			b.src.errs = append(b.src.errs, err)
		case root != nil:
			add(src, root)
		}
	}
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
		for _, file := range f.texts("metrics") {
			profile(item, f.at("metrics"), file, b.metricProfile)
		}
		for _, file := range f.texts("alerts") {
			profile(item, f.at("alerts"), file, b.alertProfile)
		}
	}
	for _, file := range b.options.Metrics {
		profile(b.item(), Remark{File: file}, absolute(file), b.metricProfile)
	}
	for _, file := range b.options.Alerts {
		profile(b.item(), Remark{File: file}, absolute(file), b.alertProfile)
	}
}

func absolute(file string) string {
	if whole, err := filepath.Abs(file); err == nil {
		return whole
	}
	return file
}
