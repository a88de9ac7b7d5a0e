package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// target is a scrape target and the state of its series.
type target struct {
	job, instance string
	fetch         fetch
	close         func()
	keeper        *keeper

	// mu serialises the scrapes of this target, because a series accepts samples only in chronological order. mu guards
	// the fields below, except state and types.
	mu sync.Mutex
	// series maps a series, as in the response (name and labels), to its state.
	series map[string]*series
	own    map[string]storage.SeriesRef // references of the series that describe scrapes, such as up
	// reasons lists the distinct reasons why scrapes have failed.
	reasons []string
	last    int64 // timestamp of the last scrape, in ms
	scrape  int64 // number of successful scrapes so far
	missed  int   // number of failed scrapes since the last successful one
	// lastGood is the timestamp of the last successful scrape, in ms. started is the start time of the process in that
	// scrape, or 0 if the target did not expose it.
	lastGood int64
	started  float64
	symbols  *labels.SymbolTable
	// raw holds the current /metrics response. others holds the kept lines of the response that need the full parser,
	// such as lines of new series. The next scrape reuses both buffers.
	raw    bytes.Buffer
	others []byte
	// now holds the kept lines of the current response, and before holds those lines of the previous response. remember
	// swaps them after each scrape.
	now, before lines

	state TargetState // state of the target; guarded by the recorder's mu

	typesMu sync.Mutex
	types   map[string]model.MetricType // types of the metric families, by name
}

type series struct {
	ref   storage.SeriesRef
	seen  int64 // number of the last successful scrape whose response contained the series
	line  int   // index of the series' line in target.before; valid only if target.before contains the series
	stale bool  // whether the last sample of the series is a staleness marker
}

func newTarget(job, instance string, f fetch, closeIdle func(), k *keeper) *target {
	return &target{
		job: job, instance: instance, fetch: f, close: closeIdle, keeper: k,
		series: map[string]*series{}, own: map[string]storage.SeriesRef{}, symbols: labels.NewSymbolTable(),
		state: TargetState{Job: job, Instance: instance}, types: map[string]model.MetricType{},
	}
}

type outcome struct {
	took    time.Duration
	samples int // number of series in the response
	kept    int // number of series stored
	failed  error
}

// record scrapes the target once and stores the samples with the timestamp `at`, in ms. This timestamp must be later
// than the previous ones. The outcome contains the reason if the scrape failed. If ctx ends or the samples cannot be
// stored, record stores nothing and returns an error. The caller holds t.mu.
func (t *target) record(ctx context.Context, db *tsdb.DB, at int64, timeout time.Duration) (outcome, error) {
	t.last = at
	begin := time.Now()
	var o outcome
	t.raw.Reset()
	within, cancel := context.WithTimeout(ctx, timeout)
	o.failed = t.fetch(within, &t.raw)
	cancel()
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if o.failed == nil {
		o.failed = t.storeAll(ctx, db, at, &o)
		if broken, ok := errors.AsType[storageError](o.failed); ok {
			return o, broken.error
		}
	}
	o.took = time.Since(begin)
	app := db.AppenderV2(ctx)
	err := t.storeOwn(app, at, o)
	if err == nil && o.failed != nil {
		err = t.markStale(app, at, func(*series) bool { return true })
	}
	if err != nil {
		return o, errors.Join(err, app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return o, fmt.Errorf("write to the archive: %w", err)
	}
	return o, nil
}

// storageError is an error of the archive, not of the target.
type storageError struct{ error }

// storeAll stores the kept series of the response. If it fails, it stores nothing.
func (t *target) storeAll(ctx context.Context, db *tsdb.DB, at int64, o *outcome) error {
	started := processStart(t.raw.Bytes())
	t.now.text, o.samples = filterFamilies(t.now.text[:0], t.raw.Bytes(), t.keeper.keep)
	b := batch{target: t, app: db.AppenderV2(ctx), at: at, scrape: t.scrape + 1}
	if t.scrape > 0 && archive.SameProcess(started, t.started) {
		b.bornAt = t.lastGood
	}
	err := b.parse()
	if err == nil {
		err = t.markStale(b.app, at, func(s *series) bool { return s.seen != b.scrape })
	}
	if err != nil {
		for _, key := range b.born {
			delete(t.series, key)
		}
		if rollback := b.app.Rollback(); rollback != nil {
			return storageError{rollback}
		}
		return err
	}
	if err := b.app.Commit(); err != nil {
		return storageError{fmt.Errorf("write to the archive: %w", err)}
	}
	t.scrape, t.lastGood, t.started, o.kept = b.scrape, at, started, b.count
	t.remember()
	return nil
}

// batch stores the samples of one scrape.
type batch struct {
	*target
	app    storage.AppenderV2
	at     int64
	scrape int64
	bornAt int64    // timestamp of the additional sample, with value 0, of new cumulative series; 0 means no such sample
	born   []string // keys of new series in target.series
	count  int
	expect int // index of the line in before that most likely comes next
}

func (b *batch) parseOthers(text []byte) error {
	parser := textparse.NewPromParser(text, b.symbols, false)
	var kind model.MetricType
	for {
		entry, err := parser.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("parse the exposition: %w", err)
		case entry == textparse.EntryType:
			var family []byte
			family, kind = parser.Type()
			b.learn(family, kind)
		case entry == textparse.EntrySeries:
			if err := b.add(parser, kind); err != nil {
				return err
			}
		}
	}
}

func (b *batch) add(parser textparse.Parser, kind model.MetricType) error {
	key, _, v := parser.Series()
	s := b.series[string(key)]
	if s == nil {
		var own labels.Labels
		parser.Labels(&own)
		s = &series{}
		lset := b.label(own)
		if b.bornAt != 0 && cumulative(key, kind) {
			if err := b.append(s, lset, b.bornAt, 0); err != nil {
				return err
			}
		}
		if err := b.append(s, lset, b.at, v); err != nil {
			return err
		}
		name := string(key)
		b.series[name] = s
		b.born = append(b.born, name)
	} else if err := b.append(s, b.again(s, parser), b.at, v); err != nil {
		return err
	}
	s.seen, s.stale = b.scrape, false
	b.count++
	return nil
}

// again returns the labels with which to append a sample to a known series. They are empty unless the series is stale,
// because the storage may have dropped a stale series.
func (b *batch) again(s *series, parser textparse.Parser) labels.Labels {
	if !s.stale {
		return labels.EmptyLabels()
	}
	var own labels.Labels
	parser.Labels(&own)
	return b.label(own)
}

func (b *batch) append(s *series, lset labels.Labels, at int64, v float64) error {
	ref, err := b.app.Append(s.ref, lset, 0, at, v, nil, nil, storage.AOptions{})
	if err != nil {
		return storageError{fmt.Errorf("store a sample of %s: %w", b.instance, err)}
	}
	s.ref = ref
	return nil
}

// label adds the labels job and instance to a series. Like Prometheus, it renames the series' own labels with these
// names to exported_NAME.
func (t *target) label(own labels.Labels) labels.Labels {
	return archive.AddLabels(own, map[string]string{"job": t.job, "instance": t.instance})
}

// cumulative reports whether a series (a counter, or a bucket, sum or count) starts at 0 and only grows while its
// process runs.
func cumulative(key []byte, kind model.MetricType) bool {
	switch kind {
	case model.MetricTypeCounter, model.MetricTypeHistogram:
		return true
	case model.MetricTypeSummary:
		name := seriesName(key)
		return bytes.HasSuffix(name, []byte("_sum")) || bytes.HasSuffix(name, []byte("_count"))
	}
	return false
}

// markStale writes a staleness marker for each series for which gone returns true, so that queries no longer return the
// last value of the series.
func (t *target) markStale(app storage.AppenderV2, at int64, gone func(*series) bool) error {
	stale := math.Float64frombits(value.StaleNaN)
	for _, s := range t.series {
		if s.stale || !gone(s) {
			continue
		}
		if _, err := app.Append(s.ref, labels.EmptyLabels(), 0, at, stale, nil, nil, storage.AOptions{}); err != nil {
			return storageError{fmt.Errorf("end a series of %s: %w", t.instance, err)}
		}
		s.stale = true
	}
	return nil
}

// storeOwn stores the series that Prometheus adds to each scrape. For each reason in t.reasons, it also stores
// scrape_failed: 1 if this scrape failed for that reason, otherwise 0.
func (t *target) storeOwn(app storage.AppenderV2, at int64, o outcome) error {
	up, failed := 1.0, ""
	if o.failed != nil {
		up, failed = 0, failureReason(o.failed)
		if !slices.Contains(t.reasons, failed) {
			t.reasons = append(t.reasons, failed)
		}
	}
	own := map[string]float64{
		"up": up, "scrape_duration_seconds": o.took.Seconds(),
		"scrape_samples_scraped": float64(o.samples), "scrape_samples_post_metric_relabeling": float64(o.kept),
	}
	for name, v := range own {
		if err := t.appendOwn(app, at, v, name); err != nil {
			return err
		}
	}
	for _, reason := range t.reasons {
		v := 0.0
		if reason == failed {
			v = 1
		}
		if err := t.appendOwn(app, at, v, "scrape_failed", "reason", reason); err != nil {
			return err
		}
	}
	return nil
}

// appendOwn stores a sample of a series that describes the scrape. more are additional labels, as names and values.
func (t *target) appendOwn(app storage.AppenderV2, at int64, v float64, name string, more ...string) error {
	key := name + strings.Join(more, "=")
	lset := labels.FromStrings(append([]string{model.MetricNameLabel, name, "instance", t.instance, "job", t.job}, more...)...)
	ref, err := app.Append(t.own[key], lset, 0, at, v, nil, nil, storage.AOptions{})
	if err != nil {
		return fmt.Errorf("store %s of %s: %w", key, t.instance, err)
	}
	t.own[key] = ref
	return nil
}

// failureReason returns the reason why a scrape failed, for the label `reason` of scrape_failed: the HTTP status
// ("429"), "refused", "timeout", "reset" or "other".
func failureReason(err error) string {
	if answer, ok := errors.AsType[statusError](err); ok {
		return strconv.Itoa(int(answer))
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE):
		return "reset"
	}
	return "other"
}

// logAbsence logs the first of several failed scrapes, and after the next successful scrape how many failed. The caller
// holds t.mu.
func (t *target) logAbsence(failed error, log func(format string, args ...any)) {
	switch {
	case failed != nil:
		if t.missed++; t.missed == 1 {
			log("scrapes of %s fail: %v", t.instance, failed)
		}
	case t.missed > 0:
		log("scrapes of %s succeed again; %d scrapes failed", t.instance, t.missed)
		t.missed = 0
	}
}

func processStart(text []byte) float64 {
	const name = "\nprocess_start_time_seconds "
	i := bytes.Index(text, []byte(name))
	if i < 0 {
		return 0
	}
	line, _, _ := bytes.Cut(text[i+len(name):], []byte("\n"))
	v, err := strconv.ParseFloat(string(bytes.TrimSpace(line)), 64)
	if err != nil {
		return 0
	}
	return v
}
