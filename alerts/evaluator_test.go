package alerts

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
)

// rule is a rule, with the series that it wrote in the last evaluation.
type rule struct {
	rulefmt.Rule
	wrote map[string]labels.Labels
	// active holds, by labels, the time since which each result of an alert exists without interruption.
	active map[string]time.Time
}

// evaluator evaluates rules like a Prometheus server. It stores the result of a recording rule with the rule's labels,
// and an alert as a series of ALERTS, which is pending until the time `for` is over. A series that ends gets a
// staleness marker.
type evaluator struct {
	suite *promqltest.LazyLoader
	rules []rule
}

func newEvaluator(suite *promqltest.LazyLoader, rules []rule) *evaluator {
	e := &evaluator{suite: suite}
	for _, r := range rules {
		e.rules = append(e.rules, rule{Rule: r.Rule, wrote: map[string]labels.Labels{}, active: map[string]time.Time{}})
	}
	return e
}

func (e *evaluator) query(expr string, at time.Time) (promql.Vector, error) {
	q, err := e.suite.QueryEngine().NewInstantQuery(e.suite.Context(), e.suite.Queryable(), nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	res := q.Exec(e.suite.Context())
	if res.Err != nil {
		return nil, res.Err
	}
	switch v := res.Value.(type) {
	case promql.Vector:
		return append(promql.Vector(nil), v...), nil // copy the result, because Close reuses its memory
	case promql.Scalar:
		return promql.Vector{{F: v.V}}, nil
	}
	return nil, fmt.Errorf("%s gives a %s", expr, res.Value.Type())
}

// evaluate evaluates every rule once, in order. So an alert uses the records of the same round.
func (e *evaluator) evaluate(at time.Time) error {
	for i := range e.rules {
		r := &e.rules[i]
		result, err := e.query(r.Expr, at)
		if err != nil {
			return fmt.Errorf("%s%s: %w", r.Record, r.Alert, err)
		}
		out := r.record(result)
		if r.Alert != "" {
			if out, err = r.alert(e.suite.Context(), result, at); err != nil {
				return fmt.Errorf("%s: %w", r.Alert, err)
			}
		}
		if err := e.store(r, out, at); err != nil {
			return fmt.Errorf("%s%s: %w", r.Record, r.Alert, err)
		}
	}
	return nil
}

func (r *rule) record(result promql.Vector) promql.Vector {
	var out promql.Vector
	for _, s := range result {
		b := labels.NewBuilder(s.Metric).Set(model.MetricNameLabel, r.Record)
		for name, v := range r.Labels {
			b.Set(name, v)
		}
		out = append(out, promql.Sample{Metric: b.Labels(), F: s.F})
	}
	return out
}

// alert turns results into series of ALERTS. It expands every annotation, so a label that the result lacks is an error
// and not a gap in a sentence.
func (r *rule) alert(ctx context.Context, result promql.Vector, at time.Time) (promql.Vector, error) {
	var out promql.Vector
	now := map[string]time.Time{}
	for _, s := range result {
		if err := r.annotate(ctx, s, at); err != nil {
			return nil, err
		}
		b := labels.NewBuilder(s.Metric).Del(model.MetricNameLabel)
		for name, v := range r.Labels {
			b.Set(name, v)
		}
		key := b.Labels().String()
		if _, twice := now[key]; twice {
			return nil, fmt.Errorf("two results with the labels %s", key)
		}
		since, ok := r.active[key]
		if !ok {
			since = at
		}
		now[key] = since
		state := "pending"
		if at.Sub(since) >= time.Duration(r.For) {
			state = "firing"
		}
		b.Set(model.MetricNameLabel, "ALERTS").Set("alertname", r.Alert).Set("alertstate", state)
		out = append(out, promql.Sample{Metric: b.Labels(), F: 1})
	}
	r.active = now
	return out, nil
}

func (r *rule) annotate(ctx context.Context, s promql.Sample, at time.Time) error {
	data := template.AlertTemplateData(s.Metric.Map(), nil, "", s)
	for name, text := range r.Annotations {
		text = "{{$labels := .Labels}}{{$value := .Value}}" + text
		got, err := template.NewTemplateExpander(ctx, text, name, data, model.TimeFromUnixNano(at.UnixNano()), nil, &url.URL{},
			[]string{"missingkey=error"}).Expand()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if strings.Contains(got, "<no value>") || strings.Contains(got, "NaN") || strings.Contains(got, "\x00") {
			return fmt.Errorf("%s reads %q", name, got)
		}
	}
	return nil
}

// store appends the samples of a round. It ends the series that r wrote in the previous round but not in this one.
func (e *evaluator) store(r *rule, out promql.Vector, at time.Time) error {
	app := e.suite.Storage().AppenderV2(e.suite.Context())
	add := func(l labels.Labels, v float64) error {
		_, err := app.Append(0, l, 0, at.UnixMilli(), v, nil, nil, storage.AOptions{})
		return err
	}
	wrote := map[string]labels.Labels{}
	for _, s := range out {
		key := s.Metric.String()
		if err := add(s.Metric, s.F); err != nil {
			return err
		}
		wrote[key] = s.Metric
		delete(r.wrote, key)
	}
	for _, gone := range r.wrote {
		if err := add(gone, math.Float64frombits(value.StaleNaN)); err != nil {
			return err
		}
	}
	r.wrote = wrote
	return app.Commit()
}
