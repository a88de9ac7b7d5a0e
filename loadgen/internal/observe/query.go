package observe

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// maxSteps of a range query, as in Prometheus.
const maxSteps = 11_000

// queryData is the data of both kinds of query.
type queryData struct {
	ResultType parser.ValueType `json:"resultType"`
	Result     any              `json:"result"`
	Stats      stats.QueryStats `json:"stats,omitempty"`
}

func (s *Server) query(r *http.Request) (answer, error) {
	at, err := optional(r, "time", s.c.Now())
	if err != nil {
		return answer{}, err
	}
	return s.execute(r, func(ctx context.Context, o promql.QueryOpts, expr string) (promql.Query, error) {
		return s.engine.NewInstantQuery(ctx, s.samples, o, expr, at)
	})
}

func (s *Server) queryRange(r *http.Request) (answer, error) {
	start, err := required(r, "start")
	if err != nil {
		return answer{}, err
	}
	end, err := required(r, "end")
	if err != nil {
		return answer{}, err
	}
	step, err := parseDuration(r.FormValue("step"))
	switch {
	case err != nil:
		return answer{}, badParameter("step", err)
	case end.Before(start):
		return answer{}, badParameter("end", errors.New("end timestamp must not be before start time"))
	case step <= 0:
		return answer{}, badParameter("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	case end.Sub(start)/step > maxSteps:
		return answer{}, badData{errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")}
	}
	return s.execute(r, func(ctx context.Context, o promql.QueryOpts, expr string) (promql.Query, error) {
		return s.engine.NewRangeQuery(ctx, s.samples, o, expr, start, end, step)
	})
}

// execute runs the query that a request asks for.
func (s *Server) execute(r *http.Request, begin func(context.Context, promql.QueryOpts, string) (promql.Query, error)) (answer, error) {
	limit, err := limitOf(r)
	if err != nil {
		return answer{}, err
	}
	opts, err := queryOptions(r)
	if err != nil {
		return answer{}, err
	}
	ctx := r.Context()
	if text := r.FormValue("timeout"); text != "" {
		timeout, err := parseDuration(text)
		if err != nil {
			return answer{}, badParameter("timeout", err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	expr := r.FormValue("query")
	q, err := begin(ctx, opts, expr)
	if err != nil {
		return answer{}, badParameter("query", err)
	}
	defer q.Close() // what it gave is taken back then: it is converted before
	res := q.Exec(ctx)
	a := answer{warnings: res.Warnings, query: expr}
	if res.Err != nil {
		return a, res.Err
	}
	data := queryData{ResultType: res.Value.Type()}
	switch v := res.Value.(type) {
	case promql.Vector:
		cut := limited(a, vector(v), limit)
		data.Result, a.warnings = cut.data, cut.warnings
	case promql.Matrix:
		cut := limited(a, matrix(v), limit)
		data.Result, a.warnings = cut.data, cut.warnings
	case promql.Scalar:
		data.Result = point{v.T, v.V}
	case promql.String:
		data.Result = model.String{Value: v.V, Timestamp: model.Time(v.T)}
	}
	if r.FormValue("stats") != "" {
		data.Stats = stats.NewQueryStats(q.Stats())
	}
	a.data = data
	return a, nil
}

// There are no native histograms among what a query gives: the text format,
// which the recorder asks its targets for, has none.

type apiSample struct {
	Metric model.Metric `json:"metric"`
	Value  point        `json:"value"`
}

type apiSeries struct {
	Metric model.Metric `json:"metric"`
	Values []point      `json:"values"`
}

func vector(v promql.Vector) []apiSample {
	all := make([]apiSample, 0, len(v))
	for _, s := range v {
		all = append(all, apiSample{metric(s.Metric), point{s.T, s.F}})
	}
	return all
}

func matrix(m promql.Matrix) []apiSeries {
	all := make([]apiSeries, 0, len(m))
	for _, s := range m {
		values := make([]point, 0, len(s.Floats))
		for _, p := range s.Floats {
			values = append(values, point{p.T, p.F})
		}
		all = append(all, apiSeries{metric(s.Metric), values})
	}
	return all
}

// point is a value and its time in ms.
type point struct {
	t int64
	v float64
}

// MarshalJSON writes [seconds, "value"].
func (p point) MarshalJSON() ([]byte, error) {
	b := append([]byte{'['}, model.Time(p.t).String()...)
	b = append(b, ',', '"')
	format := byte('f')
	if abs := math.Abs(p.v); abs != 0 && (abs < 1e-6 || abs >= 1e21) && !math.IsInf(p.v, 0) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, p.v, format, -1, 64)
	return append(b, '"', ']'), nil
}

func metric(l labels.Labels) model.Metric {
	m := make(model.Metric, l.Len())
	l.Range(func(l labels.Label) { m[model.LabelName(l.Name)] = model.LabelValue(l.Value) })
	return m
}

// exemplars are none: they are not recorded.
func (s *Server) exemplars(r *http.Request) (answer, error) {
	if _, err := archive.NewParser().ParseExpr(r.FormValue("query")); err != nil {
		return answer{}, badData{err}
	}
	return answer{data: []any{}}, nil
}

func (s *Server) formatQuery(r *http.Request) (answer, error) {
	expr, err := archive.NewParser().ParseExpr(r.FormValue("query"))
	if err != nil {
		return answer{}, badParameter("query", err)
	}
	return answer{data: expr.Pretty(0)}, nil
}
