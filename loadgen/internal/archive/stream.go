package archive

import (
	"context"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Stream calls f for each series that satisfies all matchers, with its samples from start to end, in ms and inclusive.
// The samples include staleness markers and are valid only until f returns. The series are in no particular order. If f
// returns an error, Stream returns that error.
func Stream(ctx context.Context, q storage.Queryable, start, end int64, f func(labels.Labels, []promql.FPoint) error, matchers ...*labels.Matcher) (err error) {
	return StreamSome(ctx, q, start, end, func(labels.Labels) bool { return true }, f, matchers...)
}

// StreamSome is like Stream, but skips series for which wanted returns false, without reading their samples.
func StreamSome(ctx context.Context, q storage.Queryable, start, end int64, wanted func(labels.Labels) bool, f func(labels.Labels, []promql.FPoint) error, matchers ...*labels.Matcher) (err error) {
	defer survive(&err)
	opened, err := q.Querier(start, end)
	if err != nil {
		return fmt.Errorf("read samples: %w", err)
	}
	defer opened.Close()
	var it chunkenc.Iterator
	var samples []promql.FPoint
	set := opened.Select(ctx, false, nil, matchers...)
	for set.Next() {
		if !wanted(set.At().Labels()) {
			continue
		}
		samples = samples[:0]
		for it = set.At().Iterator(it); it.Next() != chunkenc.ValNone; {
			t, v := it.At()
			if t >= start && t <= end {
				samples = append(samples, promql.FPoint{T: t, F: v})
			}
		}
		if err := it.Err(); err != nil {
			return fmt.Errorf("read samples: %w", err)
		}
		if len(samples) == 0 {
			continue
		}
		if err := f(set.At().Labels(), samples); err != nil {
			return err
		}
	}
	if err := set.Err(); err != nil {
		return fmt.Errorf("read samples: %w", err)
	}
	return nil
}

// Named returns a matcher that selects all series, because each series has a metric name.
func Named() *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+")
}
