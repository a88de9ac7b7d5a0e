// Package metricnames is the table of the metrics that the project reads: the name, type
// and labels of each metric, the component that exposes it, and who needs it. The
// recorder keeps the metrics of the table; tests of packages alerts and dashboards
// compare it with the source of the components.
package metricnames

import (
	_ "embed"
	"slices"
	"strings"
)

// Metric is a metric that rules or dashboards read.
type Metric struct {
	// Name in the exposition, without the suffixes of a histogram's series.
	Name string
	// Type is "counter", "gauge" or "histogram".
	Type string
	// Labels in addition to the labels of its target.
	Labels []string
	// Source is the Go file that declares it, by import path. Tests read that file and
	// compare name, type and labels. Empty: Prometheus' own libraries declare it, or helpers
	// do; tests compare these metrics with a recording of a real run.
	Source string
}

// Component exposes a metric.
type Component string

// The components; a metric of Kube or Process is of several.
const (
	Process           Component = "process"
	Kube              Component = "kube"
	APIServer         Component = "kube-apiserver"
	Etcd              Component = "etcd"
	Scheduler         Component = "kube-scheduler"
	ControllerManager Component = "kube-controller-manager"
	MetricsServer     Component = "metrics-server"
	CloudControllers  Component = "cloud-controller-manager"
	Service           Component = "service" // of the request path
	Generator         Component = "loadgen"
	Recorder          Component = "recorder"
)

// Reader needs a metric.
type Reader string

// The readers. A metric of several is the first one's.
const (
	Rules      Reader = "rules"      // of package alerts
	Dashboards Reader = "dashboards" // of package dashboards
	Diagnosis  Reader = "diagnosis"  // objectives, breakdowns, and persons who look for a cause
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

// For is the metrics that a reader of declared ones (Rules or Dashboards) needs,
// sorted by name.
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

// Recorded returns the names of the metrics that are recorded of components, grouped by
// component. A name that ends in * is a prefix; names that it covers are left out.
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
