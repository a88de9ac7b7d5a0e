// Package archive evaluates PromQL over the metrics that a run recorded. The metrics are in a Prometheus TSDB in the
// run directory. Open never changes this TSDB. If the run was killed, Open recovers the TSDB in a copy.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Archive evaluates PromQL over the recorded metrics of a run. Times have a resolution of milliseconds.
type Archive struct {
	queryable storage.Queryable
	engine    *promql.Engine
	lookback  time.Duration
	closers   []func() error
}

// Lookback returns the maximum age of the samples that a query uses. interval is the time between two samples of a
// series.
func Lookback(interval time.Duration) time.Duration { return max(5*time.Minute, 2*interval) }

// SetInterval sets the time between two samples of a series. Without it, queries miss samples of a downsampled run with
// a long interval.
func (a *Archive) SetInterval(interval time.Duration) { a.lookback = Lookback(interval) }

// options returns the options of a query. A lookback of 0 means Prometheus' default.
func (a *Archive) options() promql.QueryOpts { return promql.NewPrometheusQueryOpts(false, a.lookback) }

// Series is one series with its points in chronological order.
type Series struct {
	Labels map[string]string // includes __name__ if the series has one
	Points []Point
}

// Point is a value at a time.
type Point struct {
	T time.Time
	V float64
}

// Sample is one element of an instant vector.
type Sample struct {
	Labels map[string]string
	V      float64
}

// NewParser returns a PromQL parser that rejects expressions whose evaluation could need too much memory.
func NewParser() parser.Parser { return bounded{parser.NewParser(parser.Options{})} }

// NewEngine returns a PromQL engine that uses NewParser. samples is the maximum number of samples that a query may
// load, timeout its maximum duration. queries limits the number of concurrent queries; nil means no limit.
func NewEngine(samples int, timeout time.Duration, queries promql.QueryTracker) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: samples, Timeout: timeout, ActiveQueryTracker: queries,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: NewParser(),
		NoStepSubqueryIntervalFn: func(int64) int64 { return defaultStep.Milliseconds() },
	})
}

// Equal returns a matcher for series whose label has the value v.
func Equal(label, v string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, label, v)
}

// Window returns a PromQL range, such as "1m30s1ms". An expression with this range, evaluated at end, includes the
// scrapes at both start and end.
func Window(start, end time.Time) string {
	return model.Duration(end.Sub(start).Truncate(time.Millisecond) + time.Millisecond).String()
}

// Open opens the archive of the run in dir. If the run was killed or is still active, it recovers the archive in a copy
// in the system's temporary directory. Close removes the copy. Every error is a *result.Damaged.
func Open(dir string) (a *Archive, err error) {
	a = &Archive{engine: NewEngine(50_000_000, 2*time.Minute, nil)}
	// Check the files first. Without this check, the TSDB would wait forever for a FIFO, and recover would copy a file
	// of any size.
	files, err := result.FilesBelow(dir, result.TSDBDir)
	if err != nil {
		return nil, err
	}
	if err := a.open(dir, files); err != nil {
		within := filepath.Join(dir, result.TSDBDir) + string(filepath.Separator)
		err = errors.New(strings.ReplaceAll(err.Error(), within, ""))
		return nil, errors.Join(&result.Damaged{File: result.TSDBDir, Err: err}, a.Close())
	}
	return a, nil
}

func (a *Archive) open(dir string, files []string) (err error) {
	defer survive(&err)
	at := filepath.Join(dir, result.TSDBDir)
	_, err = os.Stat(filepath.Join(at, WalDir))
	switch {
	case err == nil:
		return a.recover(dir, files)
	case errors.Is(err, fs.ErrNotExist):
		return a.openBlocks(at)
	}
	return err
}

// ulidLength is the length of a block's name, which is a ULID.
const ulidLength = 26

// openBlocks opens the blocks of a run that ended normally.
func (a *Archive) openBlocks(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var blocks []tsdb.BlockReader
	for _, e := range entries {
		if len(e.Name()) != ulidLength { // left by a Close that was killed, or created by a file browser
			continue
		}
		b, err := tsdb.OpenBlock(nil, filepath.Join(dir, e.Name()), chunkenc.NewPool(), nil)
		if err != nil {
			return err
		}
		a.closers = append(a.closers, b.Close)
		blocks = append(blocks, &decoded{BlockReader: b, known: map[storage.SeriesRef]decodedSeries{}})
	}
	if len(blocks) == 0 {
		return errors.New("it is empty: the run recorded nothing")
	}
	a.queryable = storage.QueryableFunc(func(mint, maxt int64) (storage.Querier, error) {
		var queriers []storage.Querier
		for _, b := range blocks {
			q, err := tsdb.NewBlockQuerier(b, mint, maxt)
			if err != nil {
				return nil, err
			}
			queriers = append(queriers, q)
		}
		return storage.NewMergeQuerier(queriers, nil, storage.ChainedSeriesMerge), nil
	})
	return nil
}

// Storage returns the storage that the archive's queries read, and the engine that evaluates them. Packages that
// evaluate rules need both, to query the series that the rules write together with the recorded series.
func (a *Archive) Storage() (storage.Queryable, *promql.Engine) { return a.queryable, a.engine }

// Evaluating returns an archive that evaluates PromQL over the samples of an active recorder. Its queries have lower
// limits than with an archive from Open.
func Evaluating(samples storage.Queryable) *Archive {
	return &Archive{queryable: samples, engine: NewEngine(5_000_000, 30*time.Second, nil)}
}

// Close closes the archive's files, and removes the copy if Open made one.
func (a *Archive) Close() error {
	var errs []error
	for _, c := range a.closers {
		errs = append(errs, c())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// Instant evaluates a PromQL expression at one time. It returns the samples sorted by their labels, because the
// engine's order varies between evaluations of histogram_quantile. It returns a scalar as one sample without labels.
func (a *Archive) Instant(ctx context.Context, expr string, at time.Time) (_ []Sample, err error) {
	defer survive(&err)
	q, err := a.engine.NewInstantQuery(ctx, a.queryable, a.options(), expr, at)
	var res *promql.Result
	if err == nil {
		defer q.Close()
		res = q.Exec(ctx)
		err = res.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	switch v := res.Value.(type) {
	case promql.Vector:
		slices.SortFunc(v, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
		samples := make([]Sample, 0, len(v))
		for _, s := range v {
			samples = append(samples, Sample{Labels: s.Metric.Map(), V: s.F})
		}
		return samples, nil
	case promql.Scalar:
		return []Sample{{V: v.V}}, nil
	}
	return nil, fmt.Errorf("%s: returns a %s, not a vector or a scalar", expr, res.Value.Type())
}

// Range evaluates a PromQL expression at start, start+step, ... end. A series has no point at a time at which the
// expression has no value.
func (a *Archive) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) (_ []Series, err error) {
	defer survive(&err)
	q, err := NewRangeQuery(ctx, a.engine, a.queryable, a.options(), expr, start, end, step)
	var matrix promql.Matrix
	if err == nil {
		defer q.Close()
		matrix, err = q.Exec(ctx).Matrix()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	all := make([]Series, 0, len(matrix))
	for _, m := range matrix {
		s := Series{Labels: m.Metric.Map()}
		for _, f := range m.Floats {
			s.Points = append(s.Points, Point{T: time.UnixMilli(f.T).UTC(), V: f.F})
		}
		all = append(all, s)
	}
	return all, nil
}

// Samples returns the raw samples from start to end, both included, of every series that satisfies all matchers. It
// omits staleness markers, and series without samples in that time.
func (a *Archive) Samples(ctx context.Context, start, end time.Time, matchers ...*labels.Matcher) (_ []Series, err error) {
	defer survive(&err)
	q, err := a.queryable.Querier(start.UnixMilli(), end.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	defer q.Close()
	var all []Series
	var it chunkenc.Iterator
	set := q.Select(ctx, true, nil, matchers...)
	for set.Next() {
		s := Series{Labels: set.At().Labels().Map()}
		for it = set.At().Iterator(it); it.Next() != chunkenc.ValNone; {
			if t, v := it.At(); !value.IsStaleNaN(v) {
				s.Points = append(s.Points, Point{T: time.UnixMilli(t).UTC(), V: v})
			}
		}
		if err := it.Err(); err != nil {
			return nil, fmt.Errorf("read samples: %w", err)
		}
		if len(s.Points) > 0 {
			all = append(all, s)
		}
	}
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	return all, nil
}

// Instances returns the sorted values of the label instance, for the series between start and end that satisfy all
// matchers.
func (a *Archive) Instances(ctx context.Context, start, end time.Time, matchers ...*labels.Matcher) ([]string, error) {
	return a.Values(ctx, start, end, model.InstanceLabel, matchers...)
}

// Values returns the sorted values of a label, for the series between start and end that satisfy all matchers. A series
// without the label has the value "".
func (a *Archive) Values(ctx context.Context, start, end time.Time, label string, matchers ...*labels.Matcher) (_ []string, err error) {
	defer survive(&err)
	q, err := a.queryable.Querier(start.UnixMilli(), end.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	defer q.Close()
	found := map[string]bool{}
	set := q.Select(ctx, false, nil, matchers...)
	for set.Next() {
		found[set.At().Labels().Get(label)] = true
	}
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// LabelNames returns the sorted label names, including __name__, of the series between start and end that satisfy all
// matchers.
func (a *Archive) LabelNames(ctx context.Context, start, end time.Time, matchers ...*labels.Matcher) (names []string, err error) {
	defer survive(&err)
	q, err := a.queryable.Querier(start.UnixMilli(), end.UnixMilli())
	if err == nil {
		defer q.Close()
		names, _, err = q.LabelNames(ctx, nil, matchers...)
	}
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	return names, nil
}

// Bounds returns the first and the last time at which all targets were scraped, successfully or not. These times are
// the boundaries of the run. If there is no such time, Bounds returns the first and the last scrape of any target.
func (a *Archive) Bounds(ctx context.Context) (first, last time.Time, err error) {
	all, err := a.scrapes(ctx)
	if err != nil {
		return first, last, err
	}
	scraped := map[time.Time]int{}
	common := 0
	for _, s := range all {
		for _, p := range s.Points {
			scraped[p.T]++
			common = max(common, scraped[p.T])
		}
	}
	if common < len(all) {
		common = 1
	}
	maps.DeleteFunc(scraped, func(_ time.Time, n int) bool { return n < common })
	if len(scraped) == 0 {
		return first, last, errors.New("the archive contains no scrape")
	}
	times := slices.SortedFunc(maps.Keys(scraped), time.Time.Compare)
	return times[0], times[len(times)-1], nil
}

// Scraped returns the times of the first and the last scrape of any target.
func (a *Archive) Scraped(ctx context.Context) (first, last time.Time, err error) {
	all, err := a.scrapes(ctx)
	for _, s := range all {
		for _, p := range s.Points {
			if first.IsZero() || p.T.Before(first) {
				first = p.T
			}
			if p.T.After(last) {
				last = p.T
			}
		}
	}
	return first, last, err
}

// scrapes returns the samples of the metric `up` of all targets. Each scrape writes one sample.
func (a *Archive) scrapes(ctx context.Context) ([]Series, error) {
	return a.Samples(ctx, time.UnixMilli(0), time.UnixMilli(math.MaxInt64/2), Equal(model.MetricNameLabel, "up"))
}

// survive converts a panic to an error. Call it with defer. Prometheus' TSDB trusts data that its checksums do not
// cover, and reads past the end of truncated files.
func survive(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it cannot be read: %v", p)
	}
}
