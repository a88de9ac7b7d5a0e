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

// Window holds the values of Grafana's time variables.
type Window struct {
	// Rate is $__rate_interval: four scrapes, and no less than a step and one.
	Rate time.Duration
	// Interval is $__interval, the step of the answer.
	Interval time.Duration
	// Range is $__range, the length of what is looked at.
	Range time.Duration
}

// Asker turns a panel's query into one that a recording can answer: variables
// stand for everything, and a recording rule's series, which a recording does
// not have, for the rule's expression.
type Asker struct {
	parser  parser.Parser
	records map[string][]record // by name: a record may have several rules
}

type record struct {
	rulefmt.Rule
	interval time.Duration
}

// NewAsker reads the recording rules of package alerts.
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

// Expand fills in the variables, each of labels with what matches everything.
// The result is PromQL.
func Expand(expr string, w Window) string {
	d := func(d time.Duration) string { return model.Duration(d.Truncate(time.Millisecond)).String() }
	return strings.NewReplacer(
		"$__rate_interval", d(w.Rate), "$__interval", d(w.Interval), "$__range", d(w.Range),
		"$cluster", ".*", "$instance", ".*",
	).Replace(expr)
}

// Ask is the query that a recording without recording rules answers.
//
// A rule's expression is evaluated at each step, where Prometheus would have
// looked at what it wrote some seconds before. An error is PromQL that cannot
// be parsed, or a record that is used in a way which cannot be rewritten.
func (a *Asker) Ask(expr string, w Window) (string, error) {
	return a.inline(Expand(expr, w), nil)
}

// edit replaces a stretch of a query.
type edit struct {
	from, to int
	with     string
}

// inline puts expressions in the place of records; inside are those that it is in.
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
			err = fmt.Errorf("%s: the record %s is made of itself", expr, s.Name)
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
			err = fmt.Errorf("%s: a record with an offset cannot be put in place", expr)
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

// union is all rules of the record that s selects, in parentheses.
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

// selected reports whether a record's selector matches the rule that sets the
// labels own. A matcher of any other label must match everything, because it
// would have to be moved into the rule's expression.
func selected(s *parser.VectorSelector, own map[string]string) (bool, error) {
	for _, m := range s.LabelMatchers {
		value, has := own[m.Name]
		switch {
		case m.Name == model.MetricNameLabel, m.Type == labels.MatchRegexp && m.Value == ".*":
		case !has:
			return false, fmt.Errorf("%s: the rule of %s does not set %s", s, s.Name, m.Name)
		case !m.Matches(value):
			return false, nil
		}
	}
	return true, nil
}
