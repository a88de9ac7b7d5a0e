package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// alertProfile adds a gate for each alert that makes kube-burner fail, and a comparison row for each other alert. In
// kube-burner, an alert fires if its expression returns a series at any time during a job
// (pkg/alerting/alert_manager.go).
func (b *burner) alertProfile(src *source, root *yaml.Node) {
	b.profile(src, root, "alert profile", b.alert)
}

// profile calls carry for each entry of an alert or metrics profile. If the profile is not a list, it adds a remark,
// which names the profile by kind.
func (b *burner) profile(src *source, root *yaml.Node, kind string, carry func(*fields, *item)) {
	if root.Kind != yaml.SequenceNode {
		src.use(root, whole)
		b.item().remark(nil, Remark{File: src.file, Line: root.Line}, "the %s must be a list", kind)
		return
	}
	src.use(root, opened)
	for i, n := range root.Content {
		carry(src.fieldsOf(n, fmt.Sprintf("[%d]", i)), b.item())
	}
	b.src.errs = append(b.src.errs, src.errs...)
}

func (b *burner) alert(f *fields, item *item) {
	text := f.text("expr", "")
	expr, why := b.promQL(text)
	severity, description := f.text("severity", "info"), f.text("description", "")
	judged := severity == "error" || severity == "critical"
	if !judged && severity != "info" && severity != "warning" {
		item.remark(nil, f.at("severity"), "kube-burner has no severity %q and treats it as info", severity)
	}
	asked := b.all.figures
	if judged {
		asked = b.all.gates
	}
	asked[text] = true
	base := unique("alert-"+metricsOf(expr), b.gateSet)
	count := fmt.Sprintf("(count(%s) or vector(0))", expr)
	whole := fmt.Sprintf("max_over_time(%s[$window:5s]) or %s", count, count)
	refused := b.forJobs(base, expr, whole, why, func(m *mapping) {
		if description != "" {
			addComment(m.key("name"), fmt.Sprintf("%s, %s: %s", path.Base(f.src.file), severity, description))
		}
		if judged {
			m.set("max", "0")
			b.gates = append(b.gates, m)
			return
		}
		m.set("unit", "count")
		b.compare = append(b.compare, m)
	})
	if refused != "" {
		item.remark(nil, f.at("expr"), "no gate: %s: %s", refused, text)
	}
}

// forJobs calls add with a new gate or comparison row, whose expression is value. If the profile's expression expr uses the
// elapsed time of a job, there is a row for each job with phases, evaluated over all phases of the job. Otherwise there is
// one, evaluated over all phases. forJobs returns why the expression cannot be used: why, or what b.refused returns.
func (b *burner) forJobs(name, expr, value, why string, add func(*mapping)) string {
	spans := []burnSpan{{}}
	if strings.Contains(expr, "$window") {
		spans = slices.DeleteFunc(slices.Clone(b.spans), func(s burnSpan) bool { return s.to == s.from })
	}
	for n, span := range spans {
		m := newMapping()
		m.set("name", name)
		if n > 0 {
			m.set("name", unique(withSuffix(name, span.job), b.gateSet))
		}
		m.set("expr", value)
		if why == "" {
			why = b.refused(m)
		}
		if why != "" {
			return why
		}
		add(m)
		b.together(m, span)
	}
	return ""
}

// together restricts a gate or a comparison row to a range of phases, which are evaluated together. If the range is
// empty, all phases are evaluated, each separately.
func (d *draft) together(gate *mapping, span burnSpan) {
	d.over(gate, span)
	if span.to-span.from > 1 {
		gate.set("together", true)
	}
}

// over restricts a gate or a comparison row to a range of phases. If the range is empty, there is no restriction.
func (d *draft) over(row *mapping, span burnSpan) {
	if n := span.to - span.from; n < 1 || n == len(d.phases) {
		return
	}
	var over []string
	for _, p := range d.phases[span.from:span.to] {
		over = append(over, phaseName(p))
	}
	row.set("over", over)
}

// promQL converts an expression of a profile. why is the reason if that is impossible, and empty otherwise.
func (b *burner) promQL(text string) (expr, why string) {
	expr, why = promQL(text, b.options.Values)
	if !b.options.OwnCluster {
		expr = ownLabelsOf(expr)
	}
	b.elapsed = b.elapsed || strings.Contains(expr, "$window")
	return expr, why
}

// metricProfile adds a comparison row for each metric of a profile.
func (b *burner) metricProfile(src *source, root *yaml.Node) {
	b.profile(src, root, "metrics profile", b.metric)
}

func (b *burner) metric(f *fields, item *item) {
	name := f.text("metricName", "")
	expr, why := b.promQL(f.text("query", ""))
	b.all.figures[f.text("query", "")] = true
	instant := f.flag("instant", false)
	base := unique(name, b.gateSet)
	if instant && f.flag("captureStart", false) && why == "" {
		item.remark(nil, f.at("captureStart"), "the figure %s is the value at the end of a phase; the value at its start is only in the run's archive", name)
	}
	value := fmt.Sprintf("max(%s)", expr)
	if !instant {
		value = fmt.Sprintf("max_over_time(%s[$window:5s])", value)
	}
	if refused := b.forJobs(base, expr, value, why, func(m *mapping) { b.compare = append(b.compare, m) }); refused != "" {
		item.remark(nil, f.at("query"), "no figure %s: %s", name, refused)
	}
	f.ignore("captureStart")
}
