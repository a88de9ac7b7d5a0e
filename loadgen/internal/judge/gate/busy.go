package gate

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// onBusyMachine begins the reason why a gate does not judge a duration that was measured on a busy machine.
const onBusyMachine = "measured on a busy machine: "

// withholdBusyMachine withholds each duration that exceeds its upper bound and was measured while other programs kept
// the machine busy. Such a duration depends on these programs as much as on the cluster. A duration within its bound
// still passes, because a busy machine makes nothing faster. Counts, ratios and alerts keep their verdict. bundled
// means that the components ran on the generator's machine. If it is not set, only the generator's own measurements can
// be withheld.
func (c Compiled) withholdBusyMachine(f finding, bundled bool, phases map[string]result.Phase) finding {
	if c.boundless || c.op != "<=" || !c.inSeconds() || !bundled && !c.objective.Client {
		return f
	}
	f.readings = slices.Clone(f.readings)
	for i, r := range f.readings {
		if r.nothing || r.missing != "" || !r.failed && c.holds(r.value) {
			continue
		}
		if busy := c.busy(r, phases); busy != "" {
			f.readings[i].missing, f.readings[i].withheld = onBusyMachine+busy, true
		}
	}
	return f
}

// busy returns the reason why the machine was busy while a value was measured, or "" if it was not busy. Values of the
// whole run, such as the registration time of nodes, are measured before the first phase. For them, busy looks at the
// first phase.
func (c Compiled) busy(r reading, phases map[string]result.Phase) string {
	in := c.measuredIn(r)
	if r.of == theRun {
		in = c.order[:1]
	}
	for _, name := range in {
		if why := busyIn(phases[name]); why != "" {
			return why
		}
	}
	return ""
}

// busyIn returns the reason why the machine was busy in a phase, with the name of the phase. It returns "" if the
// machine was not busy.
func busyIn(p result.Phase) string {
	if p.Machine == nil || p.Machine.Busy == "" {
		return ""
	}
	return p.Machine.Busy + " in " + p.Name
}

// inSeconds reports whether the gate's value is a duration. The unit of the objective decides. For PromQL, the unit of
// the bound decides or, if the bound has no unit, the metrics that the PromQL reads.
func (c Compiled) inSeconds() bool {
	switch {
	case c.objective.Unit == scenario.Seconds:
		return true
	case c.objective.Name != "expr" || c.objective.Unit != scenario.Number:
		return false
	}
	root, err := parsed(c.objective.Expr)
	return err == nil && isTime(root)
}

// isTime reports whether the PromQL node n has a duration as its value: a quantile or the mean of a histogram in
// seconds, or a gauge in seconds.
func isTime(n parser.Node) bool {
	switch n := n.(type) {
	case *parser.ParenExpr:
		return isTime(n.Expr)
	case *parser.AggregateExpr:
		return n.Op != parser.COUNT && n.Op != parser.GROUP && n.Op != parser.COUNT_VALUES && isTime(n.Expr)
	case *parser.SubqueryExpr:
		return isTime(n.Expr)
	case *parser.MatrixSelector:
		return isTime(n.VectorSelector)
	case *parser.VectorSelector:
		return strings.HasSuffix(alerting.MetricOf(n.LabelMatchers), "_seconds")
	case *parser.BinaryExpr:
		if n.ReturnBool {
			return false
		}
		if n.Op == parser.DIV {
			return reads(n.LHS, "_seconds_sum") && reads(n.RHS, "_seconds_count") || isTime(n.LHS) && n.RHS.Type() == parser.ValueTypeScalar
		}
		return isTime(n.LHS) || isTime(n.RHS)
	case *parser.Call:
		switch n.Func.Name {
		case "histogram_quantile":
			return reads(n.Args[1], "_seconds_bucket") || reads(n.Args[1], "_seconds")
		case "rate", "irate", "increase", "deriv", "changes", "resets", "count_over_time", "present_over_time", "absent", "absent_over_time":
			return false
		}
		return slices.ContainsFunc(n.Args, func(arg parser.Expr) bool { return isTime(arg) })
	}
	return false
}

// reads reports whether PromQL reads a metric whose name has the suffix.
func reads(n parser.Node, suffix string) bool {
	found := false
	parser.Inspect(n, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok && strings.HasSuffix(alerting.MetricOf(v.LabelMatchers), suffix) {
			found = true
		}
		return nil
	})
	return found
}
