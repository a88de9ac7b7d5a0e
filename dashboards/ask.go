package dashboards

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/alerts"
)

// Window holds the values of Grafana's time variables for a query.
type Window struct {
	// Rate is the value of $__rate_interval: four scrape intervals, or one step plus one scrape interval if that is
	// longer.
	Rate time.Duration
	// Interval is the value of $__interval, the step of the query.
	Interval time.Duration
	// Range is the value of $__range, the length of the displayed time range.
	Range time.Duration
}

// Asker rewrites a panel's query for the recorded data of a run. Grafana's variables match everything. The recorded
// data has no series of recording rules, so an Asker replaces these series with the expressions of the rules.
type Asker struct {
	parser  parser.Parser
	records map[string][]record // recording rules, by the name of the series that they record
}

type record struct {
	rulefmt.Rule
	interval time.Duration
}

// NewAsker returns an Asker with the recording rules of package alerts.
func NewAsker() (*Asker, error) {
	loaded, err := alerts.Records()
	if err != nil {
		return nil, err
	}
	a := &Asker{parser: parser.NewParser(parser.Options{}), records: map[string][]record{}}
	for _, g := range loaded {
		for _, r := range g.Rules {
			a.records[r.Record] = append(a.records[r.Record], record{r, time.Duration(g.Interval)})
		}
	}
	return a, nil
}

// Expand replaces Grafana's variables in expr. Time variables get their values in w; cluster and instance get a pattern
// that matches everything. The result is PromQL.
func Expand(expr string, w Window) string {
	d := func(d time.Duration) string { return model.Duration(d.Truncate(time.Millisecond)).String() }
	return strings.NewReplacer(
		"$__rate_interval", d(w.Rate), "$__interval", d(w.Interval), "$__range", d(w.Range),
		"$cluster", ".*", "$instance", ".*",
	).Replace(expr)
}

// Ask rewrites a panel's query for recorded data that has no series of recording rules.
//
// The rewritten query evaluates the expression of a rule at each step. Prometheus would instead read the value that the
// rule wrote some seconds before. Ask fails if expr is not valid PromQL, or if it uses the series of a recording rule
// in a way that Ask cannot rewrite.
func (a *Asker) Ask(expr string, w Window) (string, error) {
	return a.inline(Expand(expr, w), nil)
}

// edit is the replacement of a part of a query.
type edit struct {
	from, to int
	with     string
}

// inline replaces the series of recording rules in expr with the expressions of the rules. inside lists the series
// whose expressions contain expr. It detects rules that refer to themselves.
func (a *Asker) inline(expr string, inside []string) (string, error) {
	parsed, err := a.parser.ParseExpr(expr)
	if err != nil {
		return "", fmt.Errorf("%s: %w", expr, err)
	}
	var edits []edit
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok || a.records[s.Name] == nil {
			return nil
		}
		if slices.Contains(inside, s.Name) {
			err = fmt.Errorf("%s: the record %s refers to itself", expr, s.Name)
			return err
		}
		with, failed := a.union(s, append(inside, s.Name))
		if failed != nil {
			err = fmt.Errorf("%s: %w", expr, failed)
			return err
		}
		at := s.PositionRange()
		if len(path) > 0 {
			if m, ok := path[len(path)-1].(*parser.MatrixSelector); ok {
				at = m.PositionRange()
				with += fmt.Sprintf("[%s:%s]", model.Duration(m.Range), model.Duration(a.records[s.Name][0].interval))
			}
		}
		if s.OriginalOffset != 0 || s.Timestamp != nil {
			err = fmt.Errorf("%s: a record with an offset cannot be replaced by its rule", expr)
			return err
		}
		edits = append(edits, edit{int(at.Start), int(at.End), with})
		return nil
	})
	if err != nil {
		return "", err
	}
	slices.SortFunc(edits, func(x, y edit) int { return y.from - x.from })
	for _, e := range edits {
		expr = expr[:e.from] + e.with + expr[e.to:]
	}
	return expr, nil
}

// union returns the expressions of all recording rules that the selector s matches, joined by "or" in parentheses.
// inside is as in inline.
func (a *Asker) union(s *parser.VectorSelector, inside []string) (string, error) {
	var parts []string
	for _, r := range a.records[s.Name] {
		fits, err := selected(s, r.Labels)
		if err != nil {
			return "", err
		}
		if !fits {
			continue
		}
		part, err := a.inline(r.Expr, inside)
		if err != nil {
			return "", err
		}
		for name, value := range r.Labels {
			part = fmt.Sprintf("label_replace(%s, %q, %q, \"\", \"\")", part, name, value)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "", fmt.Errorf("no rule of %s has the labels of %s", s.Name, s)
	}
	return "(" + strings.Join(parts, " or ") + ")", nil
}

// selected reports whether the selector s of a recorded series matches a recording rule. own contains the labels that
// the rule sets. selected fails if s restricts a label that the rule does not set, because only the rule's expression
// could apply this matcher.
func selected(s *parser.VectorSelector, own map[string]string) (bool, error) {
	for _, m := range s.LabelMatchers {
		value, has := own[m.Name]
		switch {
		case m.Name == model.MetricNameLabel, m.Type == labels.MatchRegexp && m.Value == ".*":
		case !has:
			return false, fmt.Errorf("%s: the recording rule %s does not set the label %s", s, s.Name, m.Name)
		case !m.Matches(value):
			return false, nil
		}
	}
	return true, nil
}
