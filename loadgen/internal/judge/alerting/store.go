package alerting

import (
	"context"
	"errors"
	"slices"
	"sort"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// store holds the series written by rules, in memory. It is for one goroutine.
type store struct {
	byHash map[uint64][]*written
	byName map[string][]*written
}

// written is one series.
type written struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func newStore() *store {
	return &store{byHash: map[uint64][]*written{}, byName: map[string][]*written{}}
}

// Appender implements storage.Appendable.
func (s *store) Appender(context.Context) storage.Appender { return appender{s} }

// Querier implements storage.Queryable.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) {
	return querier{selected: func(_ context.Context, matchers []*labels.Matcher) ([]storage.Series, error) {
		return s.selected(mint, maxt, matchers), nil
	}}, nil
}

func (s *store) series(l labels.Labels) *written {
	h := l.Hash()
	for _, w := range s.byHash[h] {
		if labels.Equal(w.labels, l) {
			return w
		}
	}
	w := &written{labels: l}
	s.byHash[h] = append(s.byHash[h], w)
	name := l.Get(model.MetricNameLabel)
	s.byName[name] = append(s.byName[name], w)
	return w
}

func (s *store) selected(mint, maxt int64, matchers []*labels.Matcher) []storage.Series {
	var found []storage.Series
	look := func(all []*written) {
		for _, w := range all {
			if !matches(w.labels, matchers) {
				continue
			}
			from := sort.Search(len(w.samples), func(i int) bool { return w.samples[i].T() >= mint })
			to := sort.Search(len(w.samples), func(i int) bool { return w.samples[i].T() > maxt })
			if from < to {
				found = append(found, storage.NewListSeries(w.labels, w.samples[from:to]))
			}
		}
	}
	if name := MetricOf(matchers); name != "" {
		look(s.byName[name])
		return found
	}
	for _, all := range s.byName {
		look(all)
	}
	return found
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) })
}

// appender writes at once: nothing that rules write is ever taken back.
type appender struct{ store *store }

func (a appender) Append(_ storage.SeriesRef, l labels.Labels, t int64, v float64) (storage.SeriesRef, error) {
	w := a.store.series(l)
	if n := len(w.samples); n > 0 && t <= w.samples[n-1].T() {
		if t < w.samples[n-1].T() {
			return 0, storage.ErrOutOfOrderSample
		}
		return 0, storage.ErrDuplicateSampleForTimestamp
	}
	w.samples = append(w.samples, sample{t, v})
	return 0, nil
}

func (appender) Commit() error                     { return nil }
func (appender) Rollback() error                   { return nil }
func (appender) SetOptions(*storage.AppendOptions) {}

var errFloats = errors.New("rules over a run's archive record plain numbers only")

func (appender) AppendExemplar(storage.SeriesRef, labels.Labels, exemplar.Exemplar) (storage.SeriesRef, error) {
	return 0, errFloats
}

func (appender) AppendHistogram(storage.SeriesRef, labels.Labels, int64, *histogram.Histogram, *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return 0, errFloats
}

func (appender) AppendHistogramSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64, *histogram.Histogram, *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return 0, errFloats
}

func (appender) AppendSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64) (storage.SeriesRef, error) {
	return 0, errFloats
}

func (appender) UpdateMetadata(storage.SeriesRef, labels.Labels, metadata.Metadata) (storage.SeriesRef, error) {
	return 0, errFloats
}

// sample is a number at a time in milliseconds.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// querier answers from a function; PromQL asks for nothing but series.
type querier struct {
	selected func(context.Context, []*labels.Matcher) ([]storage.Series, error)
	close    func() error // nil: there is nothing to close
}

func (q querier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found, err := q.selected(ctx, matchers)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &seriesSet{all: found}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q querier) Close() error {
	if q.close == nil {
		return nil
	}
	return q.close()
}

// seriesSet goes through series that are there already.
type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at <= len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
