package importer

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/userfile"
)

// profileKind is a kind of kube-burner's profiles.
type profileKind struct {
	key, title string
	convert    func(*fields, *item) // converts an entry of a profile
	more       []string             // the profiles that the options name
}

// profile converts the entries of a profile, unless an earlier call did so. at is the place that names the file.
func (b *burner) profile(kind profileKind, at Remark, file string) {
	if b.read[file] {
		return
	}
	b.read[file] = true
	name := file
	if !filepath.IsAbs(file) {
		name = filepath.Join(b.dir, file)
	}
	data, err := userfile.Read(name, userfile.Text)
	if err != nil {
		b.fail(at, "cannot read %s: %v (paths are relative to the configuration's directory)", file, err)
		return
	}
	root, err := b.parse(name, data, nil)
	switch {
	case err != nil:
		b.errs = append(b.errs, err)
	case root == nil:
	case root.Kind != yaml.SequenceNode:
		b.use(root, whole)
		b.item().remark(nil, Remark{File: name, Line: root.Line}, "the %s must be a list", kind.title)
	default:
		b.use(root, opened)
		for i, n := range root.Content {
			kind.convert(b.fieldsOf(name, n, fmt.Sprintf("[%d]", i)), b.item())
		}
	}
}

// alert adds a gate for an alert that makes kube-burner fail, and a comparison row for any other alert. In kube-burner, an alert
// fires if its expression returns a series at any time during a job (pkg/alerting/alert_manager.go).
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
			addComment(m.key("name"), fmt.Sprintf("%s, %s: %s", path.Base(f.file), severity, description))
		}
		if judged {
			b.gates = append(b.gates, m.add("max", "0"))
			return
		}
		b.compare = append(b.compare, m.add("unit", "count"))
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
		m := block("name", name, "expr", value)
		if n > 0 {
			m.set("name", unique(withSuffix(name, span.job), b.gateSet))
		}
		if why == "" {
			why = b.refused(m)
		}
		if why != "" {
			return why
		}
		add(m)
		b.over(m, span, true)
	}
	return ""
}

// over restricts a gate or a comparison row to a range of phases, which are evaluated together or each separately. If the range is
// empty, all phases are evaluated, each separately.
func (d *draft) over(row *mapping, span burnSpan, together bool) {
	n := span.to - span.from
	if n > 0 && n < len(d.phases) {
		var over []string
		for _, p := range d.phases[span.from:span.to] {
			over = append(over, phaseName(p))
		}
		row.set("over", over)
	}
	row.add("together", together && n > 1)
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

// metric adds a comparison row for a metric of a profile.
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
