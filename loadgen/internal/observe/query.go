package observe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

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
	case end.Sub(start)/step > archive.MaxPoints:
		return answer{}, badData{errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")}
	}
	return s.execute(r, func(ctx context.Context, o promql.QueryOpts, expr string) (promql.Query, error) {
		return archive.NewRangeQuery(ctx, s.engine, s.samples, o, expr, start, end, step)
	})
}

func (s *Server) execute(r *http.Request, begin func(context.Context, promql.QueryOpts, string) (promql.Query, error)) (answer, error) {
	limit, err := limitOf(r)
	if err != nil {
		return answer{}, err
	}
	opts, err := queryOptions(r, archive.Lookback(s.c.Recorder.Interval()))
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
	defer q.Close() // Close invalidates the result, so convert it first
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

// Results contain no native histograms, because the recorder scrapes the text format, which cannot represent them.

type apiSample struct {
	Metric labels.Labels `json:"metric"`
	Value  point         `json:"value"`
}

type apiSeries struct {
	Metric labels.Labels `json:"metric"`
	Values []point       `json:"values"`
}

func vector(v promql.Vector) []apiSample {
	all := make([]apiSample, 0, len(v))
	for _, s := range v {
		all = append(all, apiSample{s.Metric, point{s.T, s.F}})
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
		all = append(all, apiSeries{s.Metric, values})
	}
	return all
}

// point is a value at a time in ms since 1970.
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

// exemplars returns an empty list, because runs do not record exemplars.
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

// parseTime parses seconds since 1970, optionally with a fraction, or an RFC 3339 time.
func parseTime(text string) (time.Time, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if math.Abs(s) > math.MaxInt64/1000 || math.IsNaN(s) {
			return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", text)
		}
		whole, fraction := math.Modf(s)
		// Round to milliseconds, the resolution of the storage.
		return time.Unix(int64(whole), int64(math.Round(fraction*1000))*int64(time.Millisecond)).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", text)
}

// parseDuration parses a number of seconds, optionally with a fraction, or a Prometheus duration.
func parseDuration(text string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if math.Abs(s) > math.MaxInt64/float64(time.Second) || math.IsNaN(s) {
			return 0, fmt.Errorf("cannot parse %q to a valid duration", text)
		}
		return time.Duration(s * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("cannot parse %q to a valid duration", text)
	}
	return time.Duration(d), nil
}

func required(r *http.Request, name string) (time.Time, error) {
	t, err := parseTime(r.FormValue(name))
	if err != nil {
		return t, badParameter(name, err)
	}
	return t, nil
}

func optional(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" {
		return otherwise, nil
	}
	t, err := parseTime(text)
	if err != nil {
		return t, badParameter(name, fmt.Errorf("invalid time value for '%s': %w", name, err))
	}
	return t, nil
}

// minTime and maxTime are the default start and end of a request, as in Prometheus.
var (
	minTime = time.Unix(math.MinInt64/1000+62135596801, 0).UTC()
	maxTime = time.Unix(math.MaxInt64/1000-62135596801, 999999999).UTC()
)

// span returns the optional start and end of a request, in milliseconds since 1970.
func span(r *http.Request) (start, end int64, err error) {
	from, err := optional(r, "start", minTime)
	if err != nil {
		return 0, 0, err
	}
	to, err := optional(r, "end", maxTime)
	return from.UnixMilli(), to.UnixMilli(), err
}

// limitOf returns the maximum number of results, or 0 for no limit.
func limitOf(r *http.Request) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err == nil && limit < 0 {
		err = errors.New("limit must be non-negative")
	}
	if err != nil {
		return 0, badParameter("limit", err)
	}
	return limit, nil
}

// queryOptions returns the options of a request. lookback is the default of lookback_delta.
func queryOptions(r *http.Request, lookback time.Duration) (promql.QueryOpts, error) {
	if text := r.FormValue("lookback_delta"); text != "" {
		var err error
		if lookback, err = parseDuration(text); err != nil {
			return nil, badData{fmt.Errorf("error parsing lookback delta duration: %w", err)}
		}
	}
	return promql.NewPrometheusQueryOpts(r.FormValue("stats") == "all", lookback), nil
}

// matchersOf returns the label matchers in the optional parameter match[].
func matchersOf(r *http.Request) ([][]*labels.Matcher, error) {
	sets, err := archive.NewParser().ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return nil, badData{err}
	}
	for _, set := range sets {
		selects := false
		for _, m := range set {
			selects = selects || !m.Matches("")
		}
		if !selects {
			return nil, badData{errors.New("match[] must contain at least one non-empty matcher")}
		}
	}
	return sets, nil
}
