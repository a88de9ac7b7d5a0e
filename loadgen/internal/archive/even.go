package archive

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Even returns an archive with the same series, but without the samples that follow the previous one after less than
// 3/4 of the scrape interval. At the borders of phases, a run scrapes more often. Prometheus' rate expects even
// intervals: it would show a drop next to such samples, although the rate did not change. The caller closes only the
// original archive.
func (a *Archive) Even(interval time.Duration) *Archive {
	even := *a
	even.closers = nil
	even.queryable = storage.QueryableFunc(func(mint, maxt int64) (storage.Querier, error) {
		q, err := a.queryable.Querier(mint, maxt)
		return evenQuerier{q, interval.Milliseconds() * 3 / 4}, err
	})
	return &even
}

type (
	evenQuerier struct {
		storage.Querier
		gap int64 // minimum time between two samples of a series, in ms
	}
	evenSet struct {
		storage.SeriesSet
		gap int64
	}
	evenSeries struct {
		storage.Series
		gap int64
	}
	evenIterator struct {
		chunkenc.Iterator // its Seek may stop at any sample
		gap               int64
		begun             bool
	}
)

// Select implements storage.Querier.
func (q evenQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return evenSet{q.Querier.Select(ctx, sorted, hints, matchers...), q.gap}
}

// At implements storage.SeriesSet.
func (s evenSet) At() storage.Series { return evenSeries{s.SeriesSet.At(), s.gap} }

// Iterator implements storage.Series. It reuses an iterator that it returned before.
func (s evenSeries) Iterator(used chunkenc.Iterator) chunkenc.Iterator {
	if it, ok := used.(*evenIterator); ok {
		used = it.Iterator
	}
	return &evenIterator{Iterator: s.Series.Iterator(used), gap: s.gap}
}

// Next implements chunkenc.Iterator. It keeps every staleness marker.
func (it *evenIterator) Next() chunkenc.ValueType {
	if !it.begun {
		it.begun = true
		return it.Iterator.Next()
	}
	for next := it.AtT() + it.gap; ; {
		kind := it.Iterator.Next()
		if kind == chunkenc.ValNone || it.AtT() >= next {
			return kind
		}
		if kind == chunkenc.ValFloat {
			if _, v := it.At(); value.IsStaleNaN(v) {
				return kind
			}
		}
	}
}
