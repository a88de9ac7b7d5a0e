// Package archive reads what a run scraped: a Prometheus TSDB in the run directory,
// asked by PromQL. Open never changes it; the store of a killed run is recovered in a
// copy.
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

// Archive answers PromQL over what a run recorded. Times are whole milliseconds.
type Archive struct {
	queryable storage.Queryable
	engine    *promql.Engine
	closers   []func() error
}

// Series is one series with its points in order of time.
type Series struct {
	Labels map[string]string // with __name__ where it has one
	Points []Point
}

// Point is one value.
type Point struct {
	T time.Time
	V float64
}

// Sample is one element of an instant vector.
type Sample struct {
	Labels map[string]string
	V      float64
}

// NewParser parses the PromQL of Prometheus, within bounds.
func NewParser() parser.Parser { return bounded{parser.NewParser(parser.Options{})} }

// NewEngine evaluates that PromQL within bounds; queries limits how many run at a time,
// nil does not.
func NewEngine(samples int, timeout time.Duration, queries promql.QueryTracker) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: samples, Timeout: timeout, ActiveQueryTracker: queries,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: NewParser(),
		NoStepSubqueryIntervalFn: func(int64) int64 { return defaultStep.Milliseconds() },
	})
}

// Equal matches the series whose label has a value.
func Equal(label, v string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, label, v)
}

// Window is the range, as PromQL writes it, that takes in the boundary scrapes
// at start and end both, in an expression evaluated at end: "1m30s1ms".
func Window(start, end time.Time) string {
	return model.Duration(end.Sub(start).Truncate(time.Millisecond) + time.Millisecond).String()
}

// Open opens the archive of the run in dir without changing it. The
// archive of a run that was killed, or still goes on, is recovered in a copy
// under the system's temporary directory, which Close removes. Every error is a
// *result.Damaged.
func Open(dir string) (a *Archive, err error) {
	a = &Archive{engine: NewEngine(50_000_000, 2*time.Minute, nil)}
	// Before Prometheus' TSDB opens them: it would wait for a writer of a FIFO, and
	// copy a file of any size.
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

// ulidLength is that of the name of a block, as Prometheus' TSDB draws it.
const ulidLength = 26

// openBlocks serves from the blocks of a run that ended in order.
func (a *Archive) openBlocks(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var blocks []tsdb.BlockReader
	for _, e := range entries {
		if len(e.Name()) != ulidLength { // what a kill while the archive was closed has left, or a file browser
			continue
		}
		b, err := tsdb.OpenBlock(nil, filepath.Join(dir, e.Name()), chunkenc.NewPool(), nil)
		if err != nil {
			return err
		}
		a.closers = append(a.closers, b.Close)
		blocks = append(blocks, decodedOnce(b))
	}
	if len(blocks) == 0 {
		return errors.New("it is empty: nothing was recorded")
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

// Storage returns the storage that the archive's queries read, and their engine,
// for those who lay series of their own over it: rules do.
func (a *Archive) Storage() (storage.Queryable, *promql.Engine) { return a.queryable, a.engine }

// Over returns an archive of samples that are still being recorded. It cannot
// evaluate PromQL.
func Over(samples storage.Queryable) *Archive { return &Archive{queryable: samples} }

// Evaluating is Over, with PromQL.
func Evaluating(samples storage.Queryable) *Archive {
	return &Archive{queryable: samples, engine: NewEngine(5_000_000, 30*time.Second, nil)}
}

// Close releases the archive.
func (a *Archive) Close() error {
	var errs []error
	for _, c := range a.closers {
		errs = append(errs, c())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// Instant evaluates a PromQL expression at one moment. A scalar is one sample
// without labels.
func (a *Archive) Instant(ctx context.Context, expr string, at time.Time) (_ []Sample, err error) {
	defer survive(&err)
	q, err := a.engine.NewInstantQuery(ctx, a.queryable, nil, expr, at)
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
		samples := make([]Sample, 0, len(v))
		for _, s := range v {
			samples = append(samples, Sample{Labels: s.Metric.Map(), V: s.F})
		}
		return samples, nil
	case promql.Scalar:
		return []Sample{{V: v.V}}, nil
	}
	return nil, fmt.Errorf("%s: gives a %s, not a vector or a scalar", expr, res.Value.Type())
}

// Range evaluates a PromQL expression at start, start+step, ... end. Where a
// series has no value it has no point.
func (a *Archive) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) (_ []Series, err error) {
	defer survive(&err)
	q, err := NewRangeQuery(ctx, a.engine, a.queryable, nil, expr, start, end, step)
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

// Samples are the raw samples, from start to end, both included, of every
// series that all matchers fit. Staleness markers are left out, and so are
// series that have no sample then.
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

// Instances are the values of label instance among the series that have a
// place in the archive between start and end and that all matchers fit, sorted.
func (a *Archive) Instances(ctx context.Context, start, end time.Time, matchers ...*labels.Matcher) (_ []string, err error) {
	defer survive(&err)
	q, err := a.queryable.Querier(start.UnixMilli(), end.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	defer q.Close()
	found := map[string]bool{}
	set := q.Select(ctx, false, nil, matchers...)
	for set.Next() {
		found[set.At().Labels().Get("instance")] = true
	}
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// LabelNames are the names of the labels, __name__ included, of the series that
// have a place in the archive between start and end and that all matchers fit,
// sorted.
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

// Bounds are the first and the last moment at which every target was scraped
// (or was tried to be): the run's first and last boundary. Where there is no
// such moment they are those of the first and the last scrape of any.
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
	for t, n := range scraped {
		if n < common {
			continue
		}
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	if first.IsZero() {
		return first, last, errors.New("the archive holds no scrape")
	}
	return first, last, nil
}

// Scraped are the moments of the first and the last scrape of any target.
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

// scrapes are the samples of up of all targets.
func (a *Archive) scrapes(ctx context.Context) ([]Series, error) {
	return a.Samples(ctx, time.UnixMilli(0), time.UnixMilli(math.MaxInt64/2), Equal(model.MetricNameLabel, "up"))
}

// survive makes an error of a panic: Prometheus' TSDB trusts what its checksums do
// not cover, and reads past the end of what was cut off.
func survive(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it cannot be read: %v", p)
	}
}
