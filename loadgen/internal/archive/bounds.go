package archive

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// The bounds of an expression, checked before it is evaluated: Prometheus' own bounds on samples and time are checked while it is, and
// one allocation can be past them.
const (
	maxExpr = 64 << 10
	// maxSteps of a range query or a subquery: the points of one series that are held at a time.
	maxSteps = 100_000
	// maxGrowth is how many times as long a label may become by label_join and label_replace.
	maxGrowth = 1_000
	// defaultStep of a subquery without one, Prometheus' default evaluation interval.
	defaultStep = time.Minute
)

// bounded is a parser of expressions whose evaluation takes bounded memory.
type bounded struct{ parser.Parser }

// ParseExpr also refuses what is past a bound.
func (p bounded) ParseExpr(text string) (parser.Expr, error) {
	if len(text) > maxExpr {
		return nil, fmt.Errorf("the expression has %d bytes, the limit is %d", len(text), maxExpr)
	}
	root, err := p.Parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return root, cost{growth: 1}.check(root)
}

// NewRangeQuery is the engine's, within bounds.
func NewRangeQuery(ctx context.Context, e *promql.Engine, q storage.Queryable, o promql.QueryOpts, expr string, start, end time.Time, step time.Duration) (promql.Query, error) {
	root, err := NewParser().ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	c := cost{span: end.Sub(start), growth: 1}
	if err := c.fits("the query", step); err != nil {
		return nil, err
	}
	if err := c.check(root); err != nil {
		return nil, err
	}
	return e.NewRangeQuery(ctx, q, o, expr, start, end, step)
}

// cost grows with each node that encloses another: span is the time over which the inner node is evaluated, growth the factor by
// which labels become longer.
type cost struct {
	span   time.Duration
	growth float64
}

func (c cost) fits(what string, step time.Duration) error {
	if steps := float64(c.span) / float64(step); steps > maxSteps {
		return fmt.Errorf("%s has %.0f steps, the limit is %d: use a longer step", what, steps, maxSteps)
	}
	return nil
}

// check returns an error for the first node past a bound.
func (c cost) check(n parser.Node) error {
	switch n := n.(type) {
	case *parser.SubqueryExpr:
		step := n.Step
		if step <= 0 {
			step = defaultStep
		}
		c.span += n.Range
		if err := c.fits(fmt.Sprintf("the subquery [%s:%s]", model.Duration(n.Range), model.Duration(step)), step); err != nil {
			return err
		}
	case *parser.Call:
		if c.growth *= growthOf(n); c.growth > maxGrowth {
			return fmt.Errorf("%s within each other make labels over %d times as long", n.Func.Name, maxGrowth)
		}
	}
	for child := range parser.ChildrenIter(n) {
		if err := c.check(child); err != nil {
			return err
		}
	}
	return nil
}

// growthOf returns how many times as long as its longest label a function can make a label.
func growthOf(call *parser.Call) float64 {
	switch call.Func.Name {
	case "label_join":
		return float64(max(1, len(call.Args)-3))
	case "label_replace":
		if by, ok := call.Args[2].(*parser.StringLiteral); ok {
			return float64(max(1, strings.Count(by.Val, "$")))
		}
	}
	return 1
}
