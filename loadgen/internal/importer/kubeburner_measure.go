package importer

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/userfile"
)

// burnTransitions are the transitions that a measurement of kube-burner is of, by the names of its conditions.
func burnTransitions(measurement string) (names []string, byCondition map[string]string) {
	switch measurement {
	case "podLatency":
		return []string{"pod-scheduled", "pod-initialized", "pod-containers-ready", "pod-ready"}, map[string]string{
			"PodScheduled": "pod-scheduled", "Initialized": "pod-initialized", "ContainersReady": "pod-containers-ready", "Ready": "pod-ready",
		}
	case "jobLatency":
		return []string{"job-complete"}, map[string]string{"Complete": "job-complete"}
	case "pvcLatency":
		return []string{"pvc-bound"}, map[string]string{"Bound": "pvc-bound"}
	}
	return nil, nil
}

// measurement adds a measurement of a job, of all with nil.
func (b *burner) measurement(f *fields, j *burnJob) {
	item := b.item()
	name := f.text("name", "")
	f.ignore("quantilesIndexer", "timeseriesIndexer")
	transitions, byCondition := burnTransitions(name)
	if transitions == nil {
		item.remark(nil, f.at("name"), "%s is not measured%s", name, instead(name))
		f.ignore("thresholds", "pprofTargets", "pprofInterval", "pprofDirectory", "nodeAffinity", "svcTimeout")
	}
	for _, t := range transitions {
		b.transition(flow("name", t))
	}
	for _, t := range f.list("thresholds") {
		if transitions != nil {
			b.threshold(item, t, byCondition, j)
		}
	}
	for _, key := range f.unread() {
		item.remark(nil, f.at(key), "kube-burner has no such field of %s", name)
	}
}

func instead(measurement string) string {
	switch measurement {
	case "pprof":
		return ": no profiles are taken"
	case "serviceLatency", "netpolLatency":
		return ": it is of real pods that connect to each other"
	case "nodeLatency":
		return ": the objective nodes-ready is of the nodes before the first phase"
	}
	return ""
}

// transition adds one, once.
func (d *draft) transition(m *mapping) {
	for _, t := range d.transitions {
		if phaseName(t) == phaseName(m) {
			return
		}
	}
	d.transitions = append(d.transitions, m)
}

// quantiles are those of kube-burner's latencies by name.
func quantiles() map[string]float64 {
	return map[string]float64{"P99": 0.99, "P95": 0.95, "P50": 0.5, "Max": 1}
}

// threshold is a gate of a latency.
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

// endpoints reads where kube-burner takes metrics from and puts results to, with its profiles.
func (b *burner) endpoints() {
	read := map[string]bool{}
	profile := func(item *item, at Remark, file string, add func(file string, root *yaml.Node)) {
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
			item.remark(nil, at, "cannot read %s: %v", file, err)
			return
		}
		src := &source{file: name}
		root, err := src.parse(data)
		switch {
		case err != nil:
			item.remark(nil, at, "%v", err)
		case root != nil:
			add(name, root)
		}
	}
	for _, f := range b.root.list("metricsEndpoints") {
		item := b.item()
		if f.has("indexer") {
			item.remark(nil, f.at("indexer"), "nothing is indexed: metrics and results are in the run's directory")
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

// alertProfile adds a gate for each alert that fails a run of kube-burner, and a figure for the others.
func (b *burner) alertProfile(file string, root *yaml.Node) {
	src := &source{file: file}
	for i, n := range root.Content {
		f := src.fieldsOf(n, fmt.Sprintf("[%d]", i))
		expr, why := promQL(f.text("expr", ""))
		severity := f.text("severity", "info")
		description := f.text("description", "")
		item := b.item()
		m := newMapping()
		first := m.set("name", unique("alert-"+metricsOf(expr), b.gateSet))
		if description != "" {
			addComment(first, fmt.Sprintf("%s, %s: %s", path.Base(file), severity, description))
		}
		if why == "" {
			// An alert fires if its expression has a series at any time of a job.
			count := fmt.Sprintf("(count(%s) or vector(0))", expr)
			m.set("expr", fmt.Sprintf("max_over_time(%s[$window:5s]) or %s", count, count))
			why = b.refused(m)
		}
		at := f.at("expr")
		switch {
		case why != "":
			item.remark(nil, at, "no gate: %s: %s", why, f.text("expr", ""))
		case severity == "error" || severity == "critical":
			m.set("max", "0")
			if severity == "critical" {
				addComment(first, "It does not end the run at once, as kube-burner's critical alerts do.")
			}
			b.gates = append(b.gates, m)
		default:
			m.set("unit", "count")
			b.compare = append(b.compare, m)
		}
	}
}

// metricProfile adds a figure for each metric of a profile.
func (b *burner) metricProfile(file string, root *yaml.Node) {
	src := &source{file: file}
	for i, n := range root.Content {
		f := src.fieldsOf(n, fmt.Sprintf("[%d]", i))
		name := f.text("metricName", "")
		expr, why := promQL(f.text("query", ""))
		item := b.item()
		m := newMapping()
		m.set("name", unique(name, b.gateSet))
		if why == "" {
			value := fmt.Sprintf("max(%s)", expr)
			if !f.flag("instant", false) {
				value = fmt.Sprintf("max_over_time(%s[$window:5s])", value)
			}
			m.set("expr", value)
			why = b.refused(m)
		}
		if why != "" {
			item.remark(nil, f.at("query"), "no figure %s: %s", name, why)
			continue
		}
		b.compare = append(b.compare, m)
	}
}
