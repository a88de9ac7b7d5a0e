// Package metricnames holds the table of the metrics that the project reads. For each metric the table has the name,
// the type, the labels, the component that exposes it, and the part of the project that reads it (Reader). The recorder
// stores the metrics in the table. Tests compare the table with the source of the components, with the rules and with
// the dashboards.
package metricnames

import (
	_ "embed"
	"slices"
	"strings"
)

// Metric is a metric that the project reads.
type Metric struct {
	// Name is the metric's name in the exposition format, without the suffixes of the series of a histogram.
	Name string
	// Type is "counter", "gauge" or "histogram".
	Type string
	// Labels lists the metric's labels, without the labels of the scrape target.
	Labels []string
	// Source is the Go file that declares the metric, by import path. Tests compare name, type and labels with this
	// file. Source is empty if a library of Prometheus or a helper function declares the metric; tests then compare the
	// metric with a recording of a real run.
	Source string
}

// Component is a component that exposes a metric, or a group of such components.
type Component string

// The components. Kube and Process are groups of several components that expose the same metrics.
const (
	Process           Component = "process"
	Kube              Component = "kube"
	APIServer         Component = "kube-apiserver"
	Etcd              Component = "etcd"
	Scheduler         Component = "kube-scheduler"
	ControllerManager Component = "kube-controller-manager"
	MetricsServer     Component = "metrics-server"
	CloudControllers  Component = "cloud-controller-manager"
	Service           Component = "service" // a program that components call, such as a webhook
	Generator         Component = "loadgen"
	Recorder          Component = "recorder"
)

// Reader is a part of the project that reads a metric.
type Reader string

// The readers. If several readers read a metric, the table lists it under the first of them in this order.
const (
	Rules      Reader = "rules"      // rules of package alerts
	Dashboards Reader = "dashboards" // dashboards of package dashboards
	Diagnosis  Reader = "diagnosis"  // objectives, breakdowns, and people who look for a cause
)

//go:embed table.txt
var table string

type row struct {
	Metric
	of Component
	by Reader
}

func rows() []row {
	var all []row
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "|")
		for i, c := range cells {
			cells[i] = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(c), "-"))
		}
		m := Metric{Name: cells[0], Type: cells[3], Labels: strings.Fields(cells[4]), Source: cells[5]}
		all = append(all, row{m, Component(cells[1]), Reader(cells[2])})
	}
	return all
}

// For returns the metrics that the table contains for a reader, sorted by name.
func For(by Reader) []Metric {
	var all []Metric
	for _, r := range rows() {
		if r.by == by {
			all = append(all, r.Metric)
		}
	}
	slices.SortFunc(all, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Family returns the metric of a series. known contains metrics by name. The series of a histogram have names that end
// in _bucket, _sum or _count.
func Family(known map[string]Metric, series string) (Metric, bool) {
	if m, ok := known[series]; ok && m.Type != "histogram" {
		return m, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok && known[name].Type == "histogram" {
			return known[name], true
		}
	}
	return Metric{}, false
}

// Recorded returns the names of the metrics to record from the given components, grouped by component. A name that ends
// in * is a prefix; Recorded omits other names that begin with this prefix.
func Recorded(of ...Component) []string {
	all := rows()
	var names []string
	for _, component := range of {
		for _, r := range all {
			if r.of == component {
				names = append(names, r.Name)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(names, func(p string) bool {
			prefix, ok := strings.CutSuffix(p, "*")
			return ok && p != name && strings.HasPrefix(name, prefix)
		})
	})
}
