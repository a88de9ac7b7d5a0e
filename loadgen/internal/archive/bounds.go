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

// Limits of an expression. The parser checks them before the evaluation. Prometheus checks its own limits on samples
// and time only during the evaluation, when a single allocation may already have exceeded them.
const (
	// maxExpr is the maximum length of an expression in bytes. The parser needs quadratic time for some expressions.
	maxExpr = 16 << 10
	// maxSteps is the maximum number of steps of a range query or a subquery, and thus the maximum number of points of one
	// series in memory.
	maxSteps = 100_000
	// maxTotal is the maximum number of steps of all subqueries of an expression. It limits the time of the evaluation.
	maxTotal = 1_000_000
	// maxSelectors is the maximum number of selectors in an expression. Each may select all series.
	maxSelectors = 200
	// maxGrowth is the maximum factor by which label_join and label_replace may lengthen a label.
	maxGrowth = 1_000
	// maxAdded is the maximum number of bytes that the string arguments of label_join and label_replace may add to a
	// label.
	maxAdded = 10_000
	// defaultStep is the step of a subquery without a step. It is Prometheus' default evaluation interval.
	defaultStep = time.Minute
)

// MaxPoints is the maximum number of steps of a user's range query, as in Prometheus. It limits memory, because each series has
// a value at each step.
const MaxPoints = 11_000

// bounded is a parser that rejects expressions whose evaluation may need too much memory.
type bounded struct{ parser.Parser }

// ParseExpr parses an expression. It returns an error if the expression exceeds a limit.
func (p bounded) ParseExpr(text string) (parser.Expr, error) {
	if len(text) > maxExpr {
		return nil, fmt.Errorf("the expression has %d bytes, the limit is %d", len(text), maxExpr)
	}
	root, err := p.Parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	if n := len(parser.ExtractSelectors(root)); n > maxSelectors {
		return nil, fmt.Errorf("the expression has %d selectors, the limit is %d", n, maxSelectors)
	}
	return root, cost{growth: 1, total: new(float64)}.check(root)
}

// NewRangeQuery is like promql.Engine.NewRangeQuery, but returns an error if the query exceeds a limit.
func NewRangeQuery(ctx context.Context, e *promql.Engine, q storage.Queryable, o promql.QueryOpts, expr string, start, end time.Time, step time.Duration) (promql.Query, error) {
	root, err := NewParser().ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	c := cost{span: end.Sub(start), growth: 1, total: new(float64)}
	if err := c.fits("the query", step); err != nil {
		return nil, err
	}
	if err := c.check(root); err != nil {
		return nil, err
	}
	return e.NewRangeQuery(ctx, q, o, expr, start, end, step)
}

// cost describes how the outer nodes of an expression affect an inner node. span is the time range over which the
// engine evaluates the inner node. Outer functions may multiply the length of the inner node's labels by growth, and
// may add `added` bytes to them. total is the number of steps of the query and of all subqueries checked so far.
type cost struct {
	span   time.Duration
	growth float64
	added  float64
	total  *float64
}

func (c cost) fits(what string, step time.Duration) error {
	steps := float64(c.span) / float64(step)
	if steps > maxSteps {
		return fmt.Errorf("%s has %.0f steps, the limit is %d: use a longer step", what, steps, maxSteps)
	}
	if *c.total += steps; *c.total > maxTotal {
		return fmt.Errorf("the subqueries have more than %d steps in total: use longer steps", maxTotal)
	}
	return nil
}

// check returns an error for the first node that exceeds a limit.
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
		factor, added := growthOf(n)
		if c.added += c.growth * added; c.added > maxAdded {
			return fmt.Errorf("the string arguments of %s add over %d bytes to a label (use shorter strings)", n.Func.Name, maxAdded)
		}
		if c.growth *= factor; c.growth > maxGrowth {
			return fmt.Errorf("nested calls of %s make labels over %d times as long (nest fewer calls)", n.Func.Name, maxGrowth)
		}
	}
	for child := range parser.ChildrenIter(n) {
		if err := c.check(child); err != nil {
			return err
		}
	}
	return nil
}

// growthOf returns the factor by which a function may lengthen the longest label of its input, and the number of bytes
// that its string arguments may add.
func growthOf(call *parser.Call) (factor, added float64) {
	switch call.Func.Name {
	case "label_join":
		n := max(1, len(call.Args)-3)
		return float64(n), float64((n - 1) * len(textOf(call.Args[2])))
	case "label_replace":
		by := textOf(call.Args[2])
		return float64(max(1, strings.Count(by, "$"))), float64(len(by))
	}
	return 1, 0
}

func textOf(e parser.Expr) string {
	switch e := e.(type) {
	case *parser.StringLiteral:
		return e.Val
	case *parser.ParenExpr:
		return textOf(e.Expr)
	}
	return ""
}
