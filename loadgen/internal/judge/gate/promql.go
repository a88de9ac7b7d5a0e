package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/internal/metricnames"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

// vain is the error for valid PromQL that cannot give a value.
type vain struct{ msg, hint string }

func (e *vain) Error() string { return e.msg }

func hintOf(err error, other string) string {
	if v, ok := errors.AsType[*vain](err); ok {
		return v.hint
	}
	return other
}

// parsed parses PromQL, with values for its variables such as $window.
func parsed(expr string) (parser.Expr, error) {
	return archive.NewParser().ParseExpr(fill(expr, "1m", 1))
}

// selectors parses PromQL and returns the matchers of its selectors. It fails for PromQL that cannot give a value.
func selectors(expr string) ([][]*labels.Matcher, error) {
	root, err := parsed(expr)
	if err != nil {
		return nil, err
	}
	if t := root.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return nil, fmt.Errorf("the expression returns a %s, not a number", parser.DocumentedType(t))
	}
	var all [][]*labels.Matcher
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			all = append(all, v.LabelMatchers)
			if alerting.MetricOf(v.LabelMatchers) == "" {
				err = fmt.Errorf("%s names no metric, but the recorder keeps only the metrics that an expression names", v)
			}
		}
		if v := inVain(n); v != nil && err == nil {
			err = v
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the expression reads no metric")
	}
	return all, err
}

// inVain returns an error if the PromQL node n can never have a value, or nil if it can.
func inVain(n parser.Node) *vain {
	switch n := n.(type) {
	case *parser.VectorSelector:
		return notOurs(alerting.MetricOf(n.LabelMatchers))
	case *parser.Call:
		switch {
		case n.Func.Name == "histogram_quantile":
			return cmp.Or(badQuantile(n.Func.Name, n.Args[0]), withoutEdges(n.Args[1]))
		case n.Func.Name == "quantile_over_time":
			return badQuantile(n.Func.Name, n.Args[0])
		}
	case *parser.AggregateExpr:
		if n.Op == parser.QUANTILE {
			return badQuantile("quantile", n.Param)
		}
	case *parser.BinaryExpr:
		if d, ok := literal(n.RHS); ok && d == 0 && (n.Op == parser.DIV || n.Op == parser.MOD) {
			return &vain{"it divides by 0", "leave the division out"}
		}
	}
	return nil
}

// ownPrefix is the prefix of the metrics that only Stormglass' own programs expose.
const ownPrefix = "stormglass_"

// notOurs returns an error if a metric has the prefix of Stormglass but Stormglass has no such metric.
func notOurs(metric string) *vain {
	if !strings.HasPrefix(metric, ownPrefix) {
		return nil
	}
	known := metricnames.Recorded(metricnames.Generator, metricnames.Service)
	for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
		if slices.Contains(known, strings.TrimSuffix(metric, suffix)) {
			return nil
		}
	}
	return &vain{fmt.Sprintf("Stormglass has no metric %s", metric), strictyaml.Hint(metric, known, "for example stormglass_requests_total and stormglass_workload_pods_ready")}
}

func badQuantile(function string, arg parser.Expr) *vain {
	q, ok := literal(arg)
	if !ok || q >= 0 && q <= 1 {
		return nil
	}
	hint := "from 0 to 1, for example 0.99"
	if q > 1 && q < 100 {
		hint = fmt.Sprintf("write %g", q/100)
	}
	return &vain{fmt.Sprintf("%s takes a quantile from 0 to 1, not %g", function, q), hint}
}

// withoutEdges returns an error if an argument of histogram_quantile reads no classic buckets, or drops the label le,
// which holds the upper edges of the buckets.
func withoutEdges(of parser.Expr) *vain {
	for _, suffix := range []string{"_count", "_sum"} {
		if metric := onlyOf(of, suffix); metric != "" {
			return &vain{fmt.Sprintf("%s has no buckets, which histogram_quantile reads", metric), "write " + strings.TrimSuffix(metric, suffix) + "_bucket, summed by (le)"}
		}
	}
	for {
		e, ok := bare(of).(*parser.AggregateExpr)
		if !ok {
			return nil
		}
		if slices.Contains(e.Grouping, model.BucketLabel) == e.Without && onlyOf(e.Expr, "_bucket") != "" {
			hint := fmt.Sprintf("write %s by (%s)", e.Op, strings.Join(append(slices.Clone(e.Grouping), model.BucketLabel), ", "))
			if e.Without {
				hint = "remove le from without"
			}
			return &vain{fmt.Sprintf("%s drops the label le, which histogram_quantile needs to distinguish the buckets", e.Op), hint}
		}
		of = e.Expr
	}
}

// onlyOf returns a metric that the expression reads, if the names of all metrics that it reads have the suffix.
// Otherwise it returns "".
func onlyOf(e parser.Expr, suffix string) string {
	metric, all := "", true
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			metric = alerting.MetricOf(v.LabelMatchers)
			all = all && strings.HasSuffix(metric, suffix)
		}
		return nil
	})
	if !all {
		return ""
	}
	return metric
}

func literal(e parser.Expr) (float64, bool) {
	n, ok := bare(e).(*parser.NumberLiteral)
	if !ok {
		return 0, false
	}
	return n.Val, true
}

// Warnings returns warnings about the PromQL of a scenario, one line each. It warns of metrics that no component of the
// bundled control plane exposes (other targets may expose them), and of PromQL that has a value only sometimes.
func Warnings(s *plan.Plan) []string {
	var all []string
	known := map[string][]string{model.JobLabel: append(s.ControlPlane.Kinds(), "loadgen"), model.InstanceLabel: append(s.ControlPlane.Components(), "loadgen")}
	exposed := metricnames.ReadExposed()
	check := func(path, expr string) {
		warn := func(hint, format string, args ...any) {
			all = append(all, s.Errorf(path, hint, format, args...).Error())
		}
		if expr == "" {
			return
		}
		reads, _ := selectors(expr)
		for _, matchers := range reads {
			if hint, metric := unexposed(s, exposed, matchers); metric != "" {
				warn(hint, "no component is known to have a metric %s", metric)
			}
			for _, m := range matchers {
				values := known[m.Name]
				if len(values) == 0 || m.Type != labels.MatchEqual && m.Type != labels.MatchRegexp || slices.ContainsFunc(values, m.Matches) {
					continue
				}
				hint := m.Name + "s: " + strings.Join(values, ", ")
				if near := nearJob(m.Value, values); near != "" {
					hint = fmt.Sprintf("did you mean %q?", near)
				}
				warn(hint, "no data on the bundled control plane: it has no %s %q", m.Name, m.Value)
			}
		}
		root, err := archive.NewParser().ParseExpr(fill(expr, "24h", 1))
		if err != nil {
			return
		}
		if b, ok := bare(root).(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() && !b.ReturnBool && b.Type() == parser.ValueTypeVector {
			warn(fmt.Sprintf("write %s bool, which gives 0 or 1", b.Op), "the expression has no value while the comparison is false")
		}
		parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
			if m, ok := n.(*parser.MatrixSelector); ok && m.RangeExpr == nil && m.Range < s.Record.Interval.D() {
				warn("write $window", "a range of %s seldom contains two scrapes: they are %s apart", model.Duration(m.Range), s.Record.Interval)
			}
			return nil
		})
	}
	for _, g := range s.Gates {
		check("gates."+g.Name+".expr", g.Expr)
	}
	for _, f := range s.Compare {
		check("compare."+f.Name+".expr", f.Expr)
	}
	for _, signal := range s.Signals {
		check("signals."+signal.Name+".expr", signal.Expr)
	}
	return all
}

// nearJob returns the job or instance that word probably means, or "".
func nearJob(word string, known []string) string {
	for _, k := range known {
		if strings.TrimPrefix(k, "kube-") == word || "kube-"+k == word {
			return k
		}
	}
	return strictyaml.Suggest(word, known)
}

func bare(e parser.Expr) parser.Expr {
	for {
		p, ok := e.(*parser.ParenExpr)
		if !ok {
			return e
		}
		e = p.Expr
	}
}

// canonical returns PromQL in a form that is independent of spaces, outer parentheses and
// the order of labels. It returns "" if expr does not parse.
func canonical(expr string) string {
	root, err := parsed(expr)
	if err != nil {
		return ""
	}
	root = bare(root)
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			slices.SortFunc(n.LabelMatchers, func(a, b *labels.Matcher) int { return strings.Compare(a.String(), b.String()) })
		case *parser.AggregateExpr:
			slices.Sort(n.Grouping)
		}
		return nil
	})
	return root.String()
}

func fill(expr, window string, hours float64) string {
	return strings.NewReplacer("$window", window, "$hours", fmt.Sprintf("%g", hours)).Replace(expr)
}
