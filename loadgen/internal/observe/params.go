package observe

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// parseTime reads seconds since 1970, with a fraction, or RFC 3339.
func parseTime(text string) (time.Time, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if math.Abs(s) > math.MaxInt64/1000 || math.IsNaN(s) {
			return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", text)
		}
		whole, fraction := math.Modf(s)
		// To the millisecond, the resolution of the storage.
		return time.Unix(int64(whole), int64(math.Round(fraction*1000))*int64(time.Millisecond)).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", text)
}

// parseDuration reads seconds, with a fraction, or a duration as PromQL has it.
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

// required is a time that a request must have.
func required(r *http.Request, name string) (time.Time, error) {
	t, err := parseTime(r.FormValue(name))
	if err != nil {
		return t, badParameter(name, err)
	}
	return t, nil
}

// optional is a time that a request may have.
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

// All of time, as Prometheus has it.
var (
	minTime = time.Unix(math.MinInt64/1000+62135596801, 0).UTC()
	maxTime = time.Unix(math.MaxInt64/1000-62135596801, 999999999).UTC()
)

// span is start and end of a request that may leave out either, in
// milliseconds.
func span(r *http.Request) (start, end int64, err error) {
	from, err := optional(r, "start", minTime)
	if err != nil {
		return 0, 0, err
	}
	to, err := optional(r, "end", maxTime)
	return from.UnixMilli(), to.UnixMilli(), err
}

// limitOf is how many results are asked for at most; 0 means all.
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

// queryOptions are lookback_delta and stats.
func queryOptions(r *http.Request) (promql.QueryOpts, error) {
	var lookback time.Duration
	if text := r.FormValue("lookback_delta"); text != "" {
		var err error
		if lookback, err = parseDuration(text); err != nil {
			return nil, badData{fmt.Errorf("error parsing lookback delta duration: %w", err)}
		}
	}
	return promql.NewPrometheusQueryOpts(r.FormValue("stats") == "all", lookback), nil
}

// matchersOf are the selectors of match[]. None are no error.
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
