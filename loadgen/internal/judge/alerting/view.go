package alerting

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Hidden is series that the rules do not see for a time, as if a scrape
// configuration had lost a job, or a family had been dropped before it was
// stored. As in Prometheus the series end with a staleness marker.
type Hidden struct {
	Matchers []*labels.Matcher
	// From the first scrape that is not seen to To, the first that is again.
	From, To time.Time
}

// view is an archive with some data hidden, or extended beyond its
// end with its last scrape over and over.
type view struct {
	inner  storage.Queryable
	hidden []Hidden
	// end is the last scrape, step the time between those that repeat it; zero:
	// none does. In milliseconds.
	end, step int64
}

// Querier implements storage.Queryable.
func (v view) Querier(mint, maxt int64) (storage.Querier, error) {
	inner, err := v.inner.Querier(min(mint, v.end), maxt)
	if err != nil {
		return nil, err
	}
	return querier{inner, func(ctx context.Context, matchers []*labels.Matcher) ([]promql.Series, error) {
		var found []promql.Series
		set := inner.Select(ctx, false, nil, matchers...)
		for set.Next() {
			s := set.At()
			all, err := v.samples(s, mint, maxt)
			if err != nil {
				return nil, err
			}
			if len(all) > 0 {
				found = append(found, promql.Series{Metric: s.Labels(), Floats: all})
			}
		}
		return found, set.Err()
	}}, nil
}

// samples are those of a series that are seen from mint to maxt.
func (v view) samples(s storage.Series, mint, maxt int64) ([]promql.FPoint, error) {
	var all []promql.FPoint
	it := s.Iterator(nil)
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		if kind != chunkenc.ValFloat {
			return nil, errors.New("the archive holds native histograms, which cannot be hidden or repeated")
		}
		t, f := it.At()
		all = append(all, promql.FPoint{T: t, F: f})
	}
	if err := it.Err(); err != nil {
		return nil, err
	}
	for _, h := range v.hidden {
		if matches(s.Labels(), h.Matchers) {
			all = h.hide(all)
		}
	}
	if n := len(all); v.step > 0 && n > 0 && all[n-1].T == v.end && !value.IsStaleNaN(all[n-1].F) {
		for t := v.end + v.step; t <= maxt; t += v.step {
			all = append(all, promql.FPoint{T: t, F: all[n-1].F})
		}
	}
	return slices.DeleteFunc(all, func(p promql.FPoint) bool { return p.T < mint }), nil
}

// hide leaves out what is hidden; the first of it becomes the end of the series.
func (h Hidden) hide(all []promql.FPoint) []promql.FPoint {
	from, to := h.From.UnixMilli(), h.To.UnixMilli()
	var left []promql.FPoint
	ended := false
	for _, s := range all {
		switch {
		case s.T < from || s.T >= to:
			left = append(left, s)
		case !ended:
			left, ended = append(left, promql.FPoint{T: s.T, F: math.Float64frombits(value.StaleNaN)}), true
		}
	}
	return left
}
