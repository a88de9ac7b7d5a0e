package gate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

// quantileOf returns the q-quantile of the distribution l as a reading. `get` reads this quantile from a distribution.
// `external` is the distribution without the generator's own delay. It is empty for old runs. If l has too few samples
// for the quantile, the value is the maximum, so that the slowest sample counts.
func quantileOf(l, external result.Latency, q float64, get func(result.Latency) float64) reading {
	r := reading{value: ofEnough(l, q, get), nothing: l.Count == 0, detail: fmt.Sprintf("%s of %d samples", quantileName(q), l.Count)}
	if tooFewFor(l.Count, q) {
		r.detail += fmt.Sprintf(": too few for the %s (it needs %d), so the value is the maximum", quantileName(q), latency.Needs(q))
	}
	if l.Clamped > 0 {
		r.detail += fmt.Sprintf(", %d of them past the histogram's range", l.Clamped)
		r.atLeast = l.Clamped > l.Count-latency.Rank(q, l.Count)
	}
	if external.Count == l.Count {
		r.external = new(ofEnough(external, q, get))
	}
	return r
}

// ofEnough returns the q-quantile, which get reads from l, or the maximum if there are too few samples. Runs of older
// versions need the maximum: they rounded the rank, so their p99 of 51 to 99 samples ignored the slowest sample.
func ofEnough(l result.Latency, q float64, get func(result.Latency) float64) float64 {
	if tooFewFor(l.Count, q) {
		return max(get(l), l.Max)
	}
	return get(l)
}

func tooFewFor(n int64, q float64) bool { return n > 0 && n < latency.Needs(q) }

func quantileName(q float64) string { return fmt.Sprintf("p%.4g", 100*q) }

// upperBoundOf returns the upper confidence bound of the p99 of l as a reading, without a value if there are too few
// samples.
func upperBoundOf(l, external result.Latency) reading {
	r := quantileOf(l, external, 0.99, func(l result.Latency) float64 {
		if l.P99Upper == nil {
			return 0
		}
		return *l.P99Upper
	})
	r.detail = "upper bound of the " + r.detail
	if !r.nothing && (l.P99Upper == nil || r.external != nil && external.P99Upper == nil) {
		r.missing = fmt.Sprintf("%d requests are too few for a confidence bound of the p99: at least 459 are needed", l.Count)
	}
	if over, ok := latency.AllowedOver(l.Count); ok && l.Clamped > over { // the bound is above the histogram's maximum
		r.atLeast = true
	}
	return r
}

// withhold sets r.missing for a scraped quantile that meets the bound although the true quantile may break it. With few
// observations, Prometheus interpolates within the bucket of the slowest one, so the value may be too low. `others`
// holds the values of the expression that cautious returns, which uses the upper edge of that bucket instead.
func (c Compiled) withhold(r *reading, labels map[string]string, others []archive.Sample) {
	for _, o := range others {
		if r.missing != "" || !maps.Equal(o.Labels, labels) || math.IsNaN(o.V) || !c.holds(r.value) || c.holds(o.V) {
			continue
		}
		u := c.objective.Unit
		r.missing = fmt.Sprintf("%s: too few observations for the quantile (a p99 needs 100): %s is interpolated, but if the slowest observation is at the upper edge of its bucket, the value is %s, which is %s %s",
			r.of, show(u, r.value), show(u, o.V), side(c.op), show(u, c.bound))
	}
}

// cautiousValues evaluates the expression that cautious derives from expr. It returns nil for figures, which have no
// bound, and if cautious does not change expr.
func (c Compiled) cautiousValues(ctx context.Context, a *archive.Archive, expr string, w window) ([]archive.Sample, error) {
	with := cautious(expr)
	if c.boundless || with == expr {
		return nil, nil
	}
	values, err := a.Instant(ctx, with, w.end)
	if err != nil { // keep the value if the cautious expression cannot be evaluated
		return nil, ctx.Err()
	}
	return values, nil
}

// cautious changes histogram_quantile in PromQL. If a group has fewer observations than the quantile needs, the new
// value is the upper edge of the bucket of the slowest observation. Prometheus interpolates within that bucket, so a
// true value above the bound could seem to meet it. cautious does not change expressions that do not parse, or
// quantiles that are not constants.
func cautious(expr string) string {
	root, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return expr
	}
	var calls []*parser.Call // calls of histogram_quantile that are not within other calls, in order
	parser.Inspect(root, func(n parser.Node, path []parser.Node) error {
		inner := slices.ContainsFunc(path, func(p parser.Node) bool { return isQuantile(p) })
		if isQuantile(n) && !inner {
			calls = append(calls, n.(*parser.Call))
		}
		return nil
	})
	text := func(n parser.Node) string { return expr[n.PositionRange().Start:n.PositionRange().End] }
	slices.SortFunc(calls, func(x, y *parser.Call) int { return int(x.PosRange.Start - y.PosRange.Start) })
	for _, call := range slices.Backward(calls) {
		q, _ := literal(call.Args[0])
		buckets := text(call.Args[1])
		made := fmt.Sprintf("((%s and max without (le) (%s) >= %d - 0.5) or histogram_quantile(1, %s))", text(call), counted(buckets), latency.Needs(q), buckets)
		expr = expr[:call.PosRange.Start] + made + expr[call.PosRange.End:]
	}
	return expr
}

func isQuantile(n parser.Node) bool {
	call, ok := n.(*parser.Call)
	if !ok || call.Func.Name != "histogram_quantile" {
		return false
	}
	q, known := literal(call.Args[0])
	return known && q > 0 && q < 1
}

// counted returns an expression with rate replaced by increase, and irate by idelta, so that its values are numbers of
// observations.
func counted(expr string) string {
	root, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return expr
	}
	var rates []*parser.Call
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		if call, ok := n.(*parser.Call); ok && (call.Func.Name == "rate" || call.Func.Name == "irate") {
			rates = append(rates, call)
		}
		return nil
	})
	slices.SortFunc(rates, func(x, y *parser.Call) int { return int(x.PosRange.Start - y.PosRange.Start) })
	for _, call := range slices.Backward(rates) {
		at := int(call.PosRange.Start)
		count := map[string]string{"rate": "increase", "irate": "idelta"}[call.Func.Name]
		expr = expr[:at] + strings.Replace(expr[at:], call.Func.Name, count, 1)
	}
	return expr
}
