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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// celName matches resource names that can be written in a CEL expression without quoting, such as deployments.apps.
var celName = regexp.MustCompile(`^[a-z][a-z0-9]*(\.[a-z][a-z0-9]*)*$`)

// readyTest returns a CEL expression that is true if object o is ready, as kube-burner and ClusterLoader2 define
// readiness for the kind. It returns "" if they do not wait for objects of this kind.
func readyTest(kind string) string {
	switch kind {
	case "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet":
		return "o.spec.replicas == 0 || has(o.status.readyReplicas) && o.status.readyReplicas == o.spec.replicas"
	case "DaemonSet":
		return "has(o.status.observedGeneration) && o.status.numberReady == o.status.desiredNumberScheduled"
	case "Pod":
		return `o.status.phase == "Running" && ` + conditionTest("Ready", "True")
	case "Job":
		return conditionTest("Complete", "True")
	case "PersistentVolumeClaim", "PersistentVolume":
		return `o.status.phase == "Bound"`
	case "VirtualMachine", "VirtualMachineInstance", "DataVolume", "DataSource":
		return conditionTest("Ready", "True")
	case "VolumeSnapshot":
		return "o.status.readyToUse"
	case "VirtualMachineInstanceReplicaSet":
		return "has(o.status.readyReplicas) && o.status.readyReplicas == o.spec.replicas"
	}
	return ""
}

// updatedTest returns a CEL expression that is true if all pods of object o have o's current template. It returns ""
// for kinds whose status does not count these pods.
func updatedTest(kind string) string {
	switch kind {
	case "Deployment", "StatefulSet":
		return "(o.spec.replicas == 0 || has(o.status.updatedReplicas) && o.status.updatedReplicas == o.spec.replicas)"
	case "DaemonSet":
		return "(o.status.desiredNumberScheduled == 0 || has(o.status.updatedNumberScheduled) && o.status.updatedNumberScheduled == o.status.desiredNumberScheduled)"
	}
	return ""
}

func conditionTest(kind, status string) string {
	return fmt.Sprintf(`o.status.conditions.exists(c, c.type == %q && c.status == %q)`, kind, status)
}

// kube-burner's examples use these jq expressions to read a status.
var (
	jqCondition = regexp.MustCompile(`^\(?\s*\.conditions\.?\[\]\s*\|\s*select\(\s*\.type\s*==\s*"([A-Za-z]+)"\s*\)\s*\)?\s*\|?\s*\.status$`)
	jqPath      = regexp.MustCompile(`^((?:\.[A-Za-z_][A-Za-z0-9_]*)+)(\s*\|\s*tostring)?(\s*\|\s*ascii_downcase)?$`)
)

// jqTest returns the CEL expression that is true if the jq expression `path`, applied to an object's status, yields
// `want`. It returns "" if it does not support the jq expression.
func jqTest(path, want string) string {
	path = strings.TrimSpace(path)
	if m := jqCondition.FindStringSubmatch(path); m != nil {
		return conditionTest(m[1], want)
	}
	if m := jqPath.FindStringSubmatch(path); m != nil {
		value := "string(o.status" + m[1] + ")"
		if m[3] != "" {
			value += ".lowerAscii()"
		}
		return fmt.Sprintf("%s == %q", value, want)
	}
	return ""
}

// allOf returns the condition that test is true for each matching object of a resource. An object matches if it has the
// given labels and, with any value, the labels that `present` names.
func allOf(resource string, labels map[string]string, test string, present ...string) string {
	var others []string
	for _, key := range present {
		others = append(others, fmt.Sprintf(`!(%q in o.metadata.labels)`, key))
	}
	for _, key := range sortedKeys(labels) {
		others = append(others, fmt.Sprintf(`!(%q in o.metadata.labels) || o.metadata.labels[%q] != %q`, key, key, labels[key]))
	}
	if len(others) > 0 {
		if strings.Contains(test, "||") || strings.Contains(test, "&&") {
			test = "(" + test + ")"
		}
		test = "!has(o.metadata.labels) || " + strings.Join(append(others, test), " || ")
	}
	return fmt.Sprintf("%s.all(o, %s)", resource, test)
}

// countOf returns the CEL expression for the number of objects of a resource that have the labels and pass all tests.
func countOf(resource string, labels map[string]string, tests ...string) string {
	if tests = append(tests, labelTests(labels)...); len(tests) > 0 {
		resource += " where " + strings.Join(tests, " && ")
	}
	return fmt.Sprintf("count(%s)", resource)
}

// labelTests returns a CEL expression for each label.
func labelTests(labels map[string]string) (tests []string) {
	for _, key := range sortedKeys(labels) {
		tests = append(tests, fmt.Sprintf(`metadata.labels[%q] == %q`, key, labels[key]))
	}
	return tests
}

// noneOf returns the condition that no object of a resource has the given labels.
func noneOf(resource string, labels map[string]string) string {
	return countOf(resource, labels) + " == 0"
}

// selector formats labels as an equality-based label selector.
func selector(labels map[string]string) string {
	var parts []string
	for _, key := range sortedKeys(labels) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

// selects reports whether `labels` contains every key and value of `asked`.
func selects(asked, labels map[string]string) bool {
	return !slices.ContainsFunc(sortedKeys(asked), func(key string) bool { return labels[key] != asked[key] })
}

func groupOf(apiVersion string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return gv.Group
}

// otherValue matches a template action that reads a value, such as {{.name}}.
var otherValue = regexp.MustCompile(`\{\{-?\s*\.(\w+)\s*-?\}\}`)

// promQL converts the text of a PromQL expression in a kube-burner profile. It inserts values, replaces the elapsed
// time of a job by $window (the length of the measured phases), and adapts the selection of API servers to the metrics
// of a run. If the conversion is impossible, why is the reason; otherwise it is empty.
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

// metricsOf returns a short name for expr: its first metric without _bucket or _total. Without a metric, it returns
// "expr".
func metricsOf(expr string) string {
	for _, m := range matchersOf(expr) {
		if m.Name == model.MetricNameLabel {
			return strings.TrimSuffix(strings.TrimSuffix(m.Value, "_bucket"), "_total")
		}
	}
	return "expr"
}

// foreignMetric matches metrics that the components of a control plane do not export.
var foreignMetric = regexp.MustCompile(`^(node|container|machine|kube|kubelet|kubeproxy|crio|haproxy|prometheus)_|` +
	`^(cadvisor|kubevirt|cilium|coredns|openshift|serviceruntime)_|^(ovn|ALERTS|probes:)`)

// foreignLabels are labels that a cluster's Prometheus adds. The metrics of the components do not have these labels.
var foreignLabels = []string{"pod", "node", "container", "endpoint", "apiserver", "cluster", "prometheus", "openshift_io_component", "service"}

// components are the jobs whose metrics a run with a bundled control plane records.
var components = []string{"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "loadgen"}

// foreign returns the reason why an expression cannot be evaluated on the metrics of a run: it uses a metric or label
// that no component of a bundled control plane has. It returns "" if the expression can be evaluated.
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

// refused returns the reason why the expression of a gate or a comparison row is invalid or cannot be evaluated. It
// returns "" if the expression can be used.
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
		_, err = gate.Compile(plan.Of(s))
	}
	if err == nil {
		return ""
	}
	before, after, _ := strings.Cut(err.Error(), "expr: ")
	return strings.ReplaceAll(cmp.Or(after, before), "\n", " ")
}
