package alerting

import (
	"context"
	"errors"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// store holds, in memory, the series that rules write. It is not safe for concurrent use.
type store struct {
	byLabels map[string]*promql.Series
	byName   map[string][]*promql.Series
}

// Appender implements storage.Appendable.
func (s *store) Appender(context.Context) storage.Appender { return appender{store: s} }

// Querier implements storage.Queryable.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) {
	return searcher{querier{storage.NoopQuerier(), func(_ context.Context, matchers []*labels.Matcher) ([]promql.Series, error) {
		return s.selected(mint, maxt, matchers), nil
	}}}, nil
}

func (s *store) series(l labels.Labels) *promql.Series {
	key := string(l.Bytes(nil))
	w := s.byLabels[key]
	if w == nil {
		w = &promql.Series{Metric: l}
		s.byLabels[key] = w
		name := l.Get(model.MetricNameLabel)
		s.byName[name] = append(s.byName[name], w)
	}
	return w
}

func (s *store) selected(mint, maxt int64, matchers []*labels.Matcher) (found []promql.Series) {
	named := s.byName
	if name := MetricOf(matchers); name != "" {
		named = map[string][]*promql.Series{name: s.byName[name]}
	}
	for _, all := range named {
		for _, w := range all {
			if !matches(w.Metric, matchers) {
				continue
			}
			from := sort.Search(len(w.Floats), func(i int) bool { return w.Floats[i].T >= mint })
			to := sort.Search(len(w.Floats), func(i int) bool { return w.Floats[i].T > maxt })
			if from < to {
				found = append(found, promql.Series{Metric: w.Metric, Floats: w.Floats[from:to]})
			}
		}
	}
	return found
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) })
}

// appender appends samples to a store immediately, so Commit and Rollback do nothing. The embedded interface is nil,
// because rules call only the methods below.
type appender struct {
	storage.Appender
	store *store
}

func (a appender) Append(_ storage.SeriesRef, l labels.Labels, t int64, v float64) (storage.SeriesRef, error) {
	w := a.store.series(l)
	if n := len(w.Floats); n > 0 && t <= w.Floats[n-1].T {
		if t < w.Floats[n-1].T {
			return 0, storage.ErrOutOfOrderSample
		}
		return 0, storage.ErrDuplicateSampleForTimestamp
	}
	w.Floats = append(w.Floats, promql.FPoint{T: t, F: v})
	return 0, nil
}

func (appender) AppendHistogram(storage.SeriesRef, labels.Labels, int64, *histogram.Histogram, *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return 0, errors.New("over a run's archive, recording rules can record only floats, not native histograms")
}

func (appender) Commit() error                     { return nil }
func (appender) Rollback() error                   { return nil }
func (appender) SetOptions(*storage.AppendOptions) {}

// querier is a storage.Querier whose Select calls a function. The embedded querier provides the other methods.
type querier struct {
	storage.Querier
	selected func(context.Context, []*labels.Matcher) ([]promql.Series, error)
}

func (q querier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found, err := q.selected(ctx, matchers)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	slices.SortFunc(found, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	return &seriesSet{all: found}
}

type seriesSet struct {
	all []promql.Series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at <= len(s.all) }
func (s *seriesSet) At() storage.Series                { return promql.NewStorageSeries(s.all[s.at-1]) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// Hidden selects series that rules cannot read in a time range, as if a job was not in the scrape configuration, or a
// metric was dropped before storage. As in Prometheus, a staleness marker ends each hidden series.
type Hidden struct {
	Matchers []*labels.Matcher
	// From is the time of the first hidden scrape. To is the time of the next visible scrape.
	From, To time.Time
}

// view is an archive that hides some data, or that repeats its last scrape after its end.
type view struct {
	inner  storage.Queryable
	hidden []Hidden
	// end is the time of the last scrape. After it, the view returns the samples of this scrape again at every step, as
	// if nothing changed. Both are in milliseconds. A step of zero means that nothing is repeated.
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

// hide removes the hidden points of a series. It replaces the first one with a staleness marker, which ends the series.
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
