package importer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// otherValue matches a template action that reads a value, such as {{.name}}.
var otherValue = regexp.MustCompile(`\{\{-?\s*\.(\w+)\s*-?\}\}`)

// promQL converts an expression of a profile: it inserts values, replaces the elapsed time of a job by $window, the length of the
// measured phases, and selects API servers as in the metrics of a run. why is the reason if that is impossible, and empty
// otherwise.
func (b *burner) promQL(text string) (expr, why string) {
	text = otherValue.ReplaceAllStringFunc(text, func(action string) string {
		name := otherValue.FindStringSubmatch(action)[1]
		switch v, ok := b.options.Values[name]; {
		case ok:
			return fmt.Sprint(v)
		case name == "elapsed":
			return "$window"
		}
		return action
	})
	expr = strings.Join(strings.Fields(text), " ")
	if !b.options.OwnCluster {
		expr = apiServerJob.ReplaceAllString(apiServerLabel.ReplaceAllString(expr, "job$1"), `job$1"kube-apiserver"`)
	}
	b.elapsed = b.elapsed || strings.Contains(expr, "$window")
	switch {
	case expr == "":
		why = "there is no expression"
	case strings.Contains(expr, "{{"):
		why = "it is a template that lacks a value (add --set NAME=VALUE)"
	}
	return expr, why
}

// These are label matchers that select API servers: by the label apiserver, as on OpenShift, or by the job in a
// cluster's Prometheus. In the metrics of a run, job="kube-apiserver" selects them.
var (
	apiServerLabel = regexp.MustCompile(`\bapiserver(\s*(?:=~|!=|!~|=)\s*")`)
	apiServerJob   = regexp.MustCompile(`\bjob(\s*=\s*)"apiserver"`)
)

var window = strings.NewReplacer("$window", "1m", "$hours", "1")

// matchersOf returns the label matchers of the vector selectors in an expression, or nil if the expression is invalid.
func matchersOf(expr string) (all []*labels.Matcher) {
	root, err := archive.NewParser().ParseExpr(window.Replace(expr))
	if err != nil {
		return nil
	}
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			all = append(all, v.LabelMatchers...)
		}
		return nil
	})
	return all
}

// metricsOf returns a short name for an expression: the name of its first metric without suffix, or "expr".
func metricsOf(expr string) string {
	for _, m := range matchersOf(expr) {
		if m.Name == model.MetricNameLabel {
			return strings.TrimSuffix(strings.TrimSuffix(m.Value, "_bucket"), "_total")
		}
	}
	return "expr"
}

// foreignMetric matches metrics that the components of a control plane do not export.
var foreignMetric = regexp.MustCompile(`^(node|container|machine|kube|kubelet|kubeproxy|crio|haproxy|prometheus|cadvisor|kubevirt|cilium|coredns|openshift)_|` +
	`^(ovn|ALERTS|probes:|serviceruntime_)`)

// foreignLabels are labels that a cluster's Prometheus adds. The metrics of the components do not have these labels.
var foreignLabels = []string{"pod", "node", "container", "endpoint", "apiserver", "cluster", "prometheus", "openshift_io_component", "service"}

// components are the jobs whose metrics a run with a bundled control plane records.
var components = []string{"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "loadgen"}

// foreign returns why an expression cannot be evaluated on the metrics of a run: it uses a metric or label that no
// component of a bundled control plane has. It returns "" if the expression can be evaluated.
func foreign(expr string) string {
	for _, m := range matchersOf(expr) {
		switch {
		case m.Name == model.MetricNameLabel && strings.Contains(m.Value, ":"):
			return m.Value + " comes from a recording rule"
		case m.Name == model.MetricNameLabel && foreignMetric.MatchString(m.Value):
			return "no component of a bundled control plane has " + m.Value
		case slices.Contains(foreignLabels, m.Name) && !m.Matches(""):
			return fmt.Sprintf("the label %s is added by a cluster's Prometheus, so the metrics that a run records do not have it", m.Name)
		case m.Name == "job" && !slices.ContainsFunc(components, m.Matches):
			return fmt.Sprintf("there is no job %s; the jobs are %s", m.Value, strings.Join(components, ", "))
		}
	}
	return ""
}

// refused returns why the expression of a gate or a comparison row is invalid or cannot be evaluated. It returns "" if
// the expression can be used.
func (d *draft) refused(m *mapping) string {
	expr := m.value("expr").Value
	if why := foreign(expr); why != "" && !d.options.OwnCluster {
		return why
	}
	text, err := block("apiVersion", scenario.APIVersion, "kind", scenario.Kind, "name", "one", "phases", []*mapping{flow("name", "one", "for", "1m")},
		"gates", []*mapping{flow("name", "one", "expr", expr, "max", "0")}).bytes()
	var s *scenario.Scenario
	if err == nil {
		s, err = scenario.Parse("one", text, nil)
	}
	if err == nil {
		_, err = gate.Compile(s)
	}
	if err == nil {
		return ""
	}
	before, after, _ := strings.Cut(err.Error(), "expr: ")
	return strings.ReplaceAll(cmp.Or(after, before), "\n", " ")
}
