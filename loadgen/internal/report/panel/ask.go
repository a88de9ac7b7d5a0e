// Package panel draws the panels of the Grafana dashboards from the recorded metrics of a run: it runs their queries on
// the archive of the run. Check reports for each query whether it has data, or why missing data is acceptable. Moved
// tests whether a panel reveals the faults that it claims to show: it compares the lines during and before a fault.
// HTML draws all panels into a page, for readers without Grafana.
package panel

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// Span is the time range of a recording that the panels show.
type Span struct {
	Start, End time.Time
	// Scrape is the interval between scrapes.
	Scrape time.Duration
}

// maxPoints is the maximum number of points of a series. A panel is only a few hundred pixels wide, so it cannot show
// more.
const maxPoints = 150

// step returns the time between points, so that the span has at most `most` points. The step is
// a whole number of seconds, and not shorter than the scrape interval.
func (s Span) step(most int) time.Duration {
	step := max(s.Scrape, time.Second, s.End.Sub(s.Start)/time.Duration(most-1)).Round(time.Second)
	for s.points(step) > most {
		step += time.Second
	}
	return step
}

// points returns the number of points with the given step.
func (s Span) points(step time.Duration) int { return int(s.End.Sub(s.Start)/step) + 1 }

// window returns the values of Grafana's time variables, such as $__rate_interval, for the given step.
func (s Span) window(step time.Duration) dashboards.Window {
	return dashboards.Window{Rate: max(4*s.Scrape, step+s.Scrape), Interval: step, Range: s.End.Sub(s.Start)}
}

// answer is the result of one query of a panel on a recording.
type answer struct {
	dashboard dashboards.Dashboard
	panel     dashboards.Panel
	query     dashboards.Query
	ranges    []time.Duration // ranges of the rates in the query
	series    []chart.Series
	err       error
}

// finite counts the points with finite and with infinite values. It ignores NaN, the quantile of an empty histogram.
func (a answer) finite() (numbers, infinite int) {
	for _, s := range a.series {
		for _, p := range s.Points {
			switch {
			case math.IsInf(p.V, 0):
				infinite++
			case !math.IsNaN(p.V):
				numbers++
			}
		}
	}
	return numbers, infinite
}

// ask runs every query of every panel, in order. A result may hold the error of its query. ask itself fails only if the
// dashboards cannot be read or ctx ends.
func ask(ctx context.Context, src chart.Source, span Span, step time.Duration) ([]answer, error) {
	boards, err := dashboards.Load()
	if err != nil {
		return nil, err
	}
	asker, err := dashboards.NewAsker()
	if err != nil {
		return nil, err
	}
	var all []answer
	for _, d := range boards {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				for _, q := range p.Queries {
					all = append(all, answer{dashboard: d, panel: p, query: q})
				}
			}
		}
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i := range all {
		work.Go(func() error {
			a := &all[i]
			expr, err := asker.Ask(a.query.Expr, span.window(step))
			if err != nil {
				return err
			}
			a.ranges = ranges(expr)
			start := span.Start
			if a.panel.Kind == "table" { // a table shows only the last values
				start = span.End
			}
			if a.series, a.err = ranked(ctx, src, expr, start, span.End, step); a.err != nil && ctx.Err() != nil {
				return ctx.Err()
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return nil, fmt.Errorf("ask the panels' queries: %w", err)
	}
	return all, nil
}

// ranges returns the ranges of the rates in expr.
func ranges(expr string) []time.Duration {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return nil // the query reports the error
	}
	var all []time.Duration
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if c, ok := n.(*parser.Call); ok && (c.Func.Name == "rate" || c.Func.Name == "increase") {
			if m, ok := c.Args[0].(*parser.MatrixSelector); ok && !slices.Contains(all, m.Range) {
				all = append(all, m.Range)
			}
		}
		return nil
	})
	return all
}

// ranked evaluates expr. Of a topk or bottomk, it returns every series that ranks high enough at some time, with all its
// values. Prometheus would return a series only at the times at which it ranks high enough, so that a reader would take
// its last value there for its value at the end. Equal values rank by their labels. Prometheus instead keeps the order
// of the series, which is random for a quotient: the same archive would give different lines each time.
func ranked(ctx context.Context, src chart.Source, expr string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return src.Range(ctx, expr, start, end, step) // src reports the error
	}
	rank, _ := parsed.(*parser.AggregateExpr)
	if rank == nil || rank.Op != parser.TOPK && rank.Op != parser.BOTTOMK || rank.Without || len(rank.Grouping) > 0 {
		return src.Range(ctx, expr, start, end, step)
	}
	most, ok := rank.Param.(*parser.NumberLiteral)
	if !ok {
		return src.Range(ctx, expr, start, end, step)
	}
	series, err := src.Range(ctx, rank.Expr.String(), start, end, step)
	if err != nil {
		return nil, err
	}
	return highest(series, int(most.Val), rank.Op == parser.BOTTOMK), nil
}

// highest returns the series that are among the `most` series with the highest values at some time, or with the lowest
// if lowest is set. NaN ranks last.
func highest(series []chart.Series, most int, lowest bool) []chart.Series {
	type candidate struct {
		series int
		point  chart.Point
	}
	slices.SortFunc(series, func(a, b chart.Series) int { return cmp.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)) })
	at := map[int64][]candidate{}
	for i, s := range series {
		for _, p := range s.Points {
			at[p.T.UnixMilli()] = append(at[p.T.UnixMilli()], candidate{i, p})
		}
	}
	kept := make([]bool, len(series))
	for _, candidates := range at {
		slices.SortStableFunc(candidates, func(a, b candidate) int {
			x, y := a.point.V, b.point.V
			switch {
			case math.IsNaN(x) || math.IsNaN(y):
				return cmp.Compare(y, x) // cmp orders NaN below all numbers
			case lowest:
				return cmp.Compare(x, y)
			}
			return cmp.Compare(y, x)
		})
		for _, c := range candidates[:min(most, len(candidates))] {
			kept[c.series] = true
		}
	}
	var out []chart.Series
	for i, s := range series {
		if kept[i] {
			out = append(out, s)
		}
	}
	return out
}
