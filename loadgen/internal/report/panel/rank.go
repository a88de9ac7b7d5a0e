package panel

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// ranked evaluates expr as src does, but for a topk or bottomk at its root: that is
// evaluated here, equal values in the order of their labels. Prometheus chooses among
// equal values by the order of the series, which is random for a quotient, so that one
// archive would give other lines each time.
func ranked(ctx context.Context, src chart.Source, expr string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return src.Range(ctx, expr, start, end, step) // its error says more
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

// highest keeps at each time the points of the most series with the highest values, or
// the lowest; NaN comes last.
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
	kept := make([][]chart.Point, len(series))
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
			kept[c.series] = append(kept[c.series], c.point)
		}
	}
	var out []chart.Series
	for i, points := range kept {
		if len(points) > 0 {
			slices.SortFunc(points, func(a, b chart.Point) int { return a.T.Compare(b.T) })
			out = append(out, chart.Series{Labels: series[i].Labels, Points: points})
		}
	}
	return out
}
