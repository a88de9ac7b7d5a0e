package runmetrics

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Query is a PromQL expression and the times at which to evaluate it.
type Query struct {
	// Expr is the expression. It may be copied from a dashboard: it may use Grafana's $__range, $__rate_interval and
	// $__interval, and also $cluster and $instance, which match every value.
	Expr string
	// From and To are the start and the end of a range query. Ask evaluates an instant query at To.
	From, To time.Time
	// Range reports whether this is a range query, at From, From+Step, ... To.
	Range bool
	// Step is the step of a range query. Zero means the scrape interval.
	Step time.Duration
}

// Answer is the result of a Query.
type Answer struct {
	Range  bool
	At     time.Time        // time of an instant query
	Values []archive.Sample // result of an instant query
	Series []archive.Series // result of a range query
	// From is the start of the query.
	From time.Time
}

// Ask evaluates a query on the run. It returns a usage error if the expression cannot be evaluated.
func (r *Run) Ask(ctx context.Context, q Query) (a Answer, err error) {
	if q.Step == 0 {
		q.Step = r.Interval
	}
	if q.Range && q.To.Sub(q.From)/q.Step > archive.MaxPoints {
		return a, exitcode.Usagef("--step %s: over %d points per series (use a longer step)", q.Step, archive.MaxPoints)
	}
	expr := dashboards.Expand(q.Expr, dashboards.Window{
		Rate: max(4*r.Interval, q.Step+r.Interval), Interval: q.Step,
		Range: q.To.Sub(q.From) + time.Millisecond, // as in archive.Window: a range excludes its start
	})
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return a, exitcode.Usagef("%s: %s (write a PromQL expression in quotes)", q.Expr, oneLine(err))
	}
	samples := r.Raw()
	if readsRules(parsed, r.rec.Downsampled != nil) {
		if samples, err = r.Replayed(ctx); err != nil {
			return a, err
		}
	}
	over := archive.Evaluating(samples)
	over.SetInterval(r.Interval)
	a = Answer{Range: q.Range, At: q.To, From: q.From}
	if q.Range {
		a.Series, err = over.Range(ctx, expr, q.From, q.To, q.Step)
	} else {
		a.Values, err = over.Instant(ctx, expr, q.To)
	}
	return a, r.queryError(err)
}

// queryError converts an error of a query to a *result.Damaged if the archive cannot be read. Other errors become usage
// errors.
func (r *Run) queryError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[promql.ErrStorage](err); ok {
		return r.rec.Unreadable(err)
	}
	return exitcode.Usagef("%s", oneLine(err))
}

// readsRules reports whether an expression may read results of rules: ALERTS, series with a colon in their name or, unless
// `named` is set, series that are selected without a name.
func readsRules(expr parser.Expr, named bool) bool {
	found := false
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			found = found || s.Name == "" && !named || strings.Contains(s.Name, ":") || strings.HasPrefix(s.Name, "ALERTS")
		}
		return nil
	})
	return found
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
