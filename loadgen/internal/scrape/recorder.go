// Package scrape scrapes every component and the generator itself into a Prometheus TSDB in the run's directory.
//
// The package has its own scrape loop (docs/design.md explains why). Prometheus' libraries parse, store and query the
// samples. As in Prometheus, series have the labels job and instance, each target has the series up and scrape_*, and
// series that disappear get staleness markers.
//
// # Zero injection
//
// PromQL ignores the first value of a counter, although the counter may have increased since the previous scrape. If the
// process is the same (by process_start_time_seconds), the recorder therefore adds a sample of 0 at the time of the
// previous scrape, like Prometheus' created-timestamp-zero-ingestion. With this sample, increase() over a phase is
// exact.
//
// # Windows
//
// A phase begins and ends with a boundary scrape, which scrapes all targets at the same timestamp. PromQL's ranges
// exclude their start, so the range that includes both scrapes is one millisecond longer than the time between them
// (archive.Window). increase() extrapolates by at most that millisecond.
package scrape

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	defaultInterval = 5 * time.Second
	// ScrapeTimeout is the time limit for the scrape of one target. It is Prometheus' default.
	ScrapeTimeout = 10 * time.Second
)

// Options configure a Recorder. The zero value is usable.
type Options struct {
	// Interval is the time between periodic scrapes of one target. Zero means 5 s.
	Interval time.Duration
	// Extra lists metric families, or single series, to record in addition to the default families, because gates read
	// them.
	Extra []string
	// Drop lists metric families that the recorder does not keep. It takes precedence over Extra and the default
	// families.
	Drop []string
	// Registry provides the generator's own metrics. Their series have job="loadgen" and instance="loadgen". Nil means
	// that they are not recorded.
	Registry prometheus.Gatherer
	// Retention is the minimum time for which the Recorder keeps samples (zero: forever). `loadgen observe` sets it.
	Retention time.Duration
	// Log logs when the scrapes of a target start to fail and when they succeed again. It does not log each failed
	// scrape, because a component may be unavailable for minutes. Nil means no log.
	Log func(format string, args ...any)
	// Now returns the current time, for the timestamps of scrapes. Nil means time.Now.
	Now func() time.Time
}

// Recorder scrapes targets into the archive of a run. It is safe for concurrent use until Close.
type Recorder struct {
	o       Options
	dir     string
	db      *tsdb.DB
	targets []*target

	mu      sync.Mutex
	counts  result.Scrapes
	pending map[*target]int64 // scrapes in progress, with a lower bound of their timestamp in ms
}

// Open creates the archive in dir/tsdb, which must not exist. Run and ScrapeNow then scrape the targets.
func Open(dir string, targets []control.ScrapeTarget, o Options) (*Recorder, error) {
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Recorder{o: o, dir: filepath.Join(dir, result.TSDBDir), counts: result.Scrapes{Failed: map[string]int64{}}, pending: map[*target]int64{}}
	for _, t := range targets {
		f, closeIdle, err := fetchHTTP(t)
		if err != nil {
			return nil, fmt.Errorf("scrape target %s: %w", t.Instance, err)
		}
		scraped := newTarget(t.Job, t.Instance, f, closeIdle, newKeeper(t.Job, o.Extra, o.Drop))
		scraped.state.URL = t.URL
		r.targets = append(r.targets, scraped)
	}
	if o.Registry != nil {
		r.targets = append(r.targets, newTarget(jobLoadgen, jobLoadgen, fetchOwn(o.Registry), func() {}, newKeeper(jobLoadgen, o.Extra, o.Drop)))
	}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the archive: %w", err)
	}
	var err error
	if r.db, err = archive.OpenStore(r.dir, o.Retention); err != nil {
		return nil, errors.Join(fmt.Errorf("create the archive: %w", err), os.RemoveAll(r.dir))
	}
	return r, nil
}

// Run scrapes each target once per interval until ctx ends, and then returns nil. It scrapes the targets at different
// times to spread the cost over the interval.
func (r *Recorder) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var loops sync.WaitGroup
	for i, t := range r.targets {
		offset := r.o.Interval * time.Duration(i) / time.Duration(len(r.targets))
		loops.Go(func() {
			if err := r.loop(ctx, t, offset); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	<-ctx.Done()
	loops.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func (r *Recorder) loop(ctx context.Context, t *target, offset time.Duration) error {
	timer := time.NewTimer(offset)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		next := time.Now().Add(r.o.Interval)
		if err := r.periodic(ctx, t); err != nil {
			return err
		}
		timer.Reset(time.Until(next))
	}
}

// skipPart determines for how long after a boundary scrape the recorder skips periodic scrapes: 1/skipPart of the
// interval.
const skipPart = 5

// periodic scrapes one target, unless a boundary scrape was less than 1/skipPart of the interval ago.
func (r *Recorder) periodic(ctx context.Context, t *target) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer r.begin(t)()
	now := r.o.Now().UnixMilli()
	if now-t.last < r.o.Interval.Milliseconds()/skipPart {
		return nil
	}
	return r.scrape(ctx, t, now)
}

// ScrapeNow scrapes every target at the boundary of a phase, in parallel. It returns the common timestamp of all
// samples, in UTC and whole milliseconds. It first waits for scrapes in progress. It counts a scrape without a response
// as failed. It returns an error only if ctx ends or the samples cannot be stored.
func (r *Recorder) ScrapeNow(ctx context.Context) (time.Time, error) {
	for _, t := range r.targets { // no deadlock: the order is fixed, and periodic holds at most one lock
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	defer r.begin(r.targets...)()
	at := r.o.Now().UnixMilli()
	for _, t := range r.targets {
		at = max(at, t.last+1)
	}
	errs := make([]error, len(r.targets))
	var all sync.WaitGroup
	for i, t := range r.targets {
		all.Go(func() { errs[i] = r.scrape(ctx, t, at) })
	}
	all.Wait()
	return time.UnixMilli(at).UTC(), errors.Join(errs...)
}

// scrape scrapes one target and counts the outcome. The caller holds t.mu.
func (r *Recorder) scrape(ctx context.Context, t *target, at int64) error {
	o, err := t.record(ctx, r.db, at, ScrapeTimeout)
	if err != nil {
		return err
	}
	t.logAbsence(o.failed, r.o.Log)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Done++
	t.state.Scraped, t.state.Took, t.state.Failed = time.UnixMilli(at), o.took, ""
	if o.failed != nil {
		t.state.Failed = o.failed.Error()
		r.counts.Failed[t.instance]++
	}
	return nil
}

// Scrapes returns the number of scrapes so far, and the number of failed scrapes by instance.
func (r *Recorder) Scrapes() result.Scrapes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return result.Scrapes{Done: r.counts.Done, Failed: maps.Clone(r.counts.Failed)}
}

// Close writes all samples into one block and removes the write-ahead log. The block is small and opens quickly. If
// Close fails, the log remains, and archive.Open recovers the samples from it.
func (r *Recorder) Close() error {
	for _, t := range r.targets {
		t.close()
	}
	if r.o.Retention > 0 {
		return r.db.Close() // a store with a retention is not an archive and already has blocks
	}
	return archive.Seal(r.dir, r.db)
}

// Storage gives access to the archive while the recorder writes it.
type Storage interface {
	storage.Queryable
	storage.AppendableV2
}

// Live returns the storage with the samples recorded so far. The storage is usable until Close.
func (r *Recorder) Live() Storage { return r.db }

// TargetState is the outcome of the last scrape of a target.
type TargetState struct {
	Job, Instance string
	// URL is the URL of the target's /metrics. It is empty for the generator, which serves no metrics.
	URL string
	// Scraped is the time of the last scrape; zero before the first scrape. Took is the duration of that scrape.
	Scraped time.Time
	Took    time.Duration
	// Failed is the reason why the last scrape failed; empty if it succeeded.
	Failed string
}

// Targets returns the states of all targets, in the order given to Open. The generator is last.
func (r *Recorder) Targets() []TargetState {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]TargetState, 0, len(r.targets))
	for _, t := range r.targets {
		all = append(all, t.state)
	}
	return all
}

// Interval returns the time between the periodic scrapes of a target.
func (r *Recorder) Interval() time.Duration { return r.o.Interval }

// Types returns the types of all recorded metric families, by name.
func (r *Recorder) Types() map[string]model.MetricType {
	all := map[string]model.MetricType{}
	for _, t := range r.targets {
		t.typesMu.Lock()
		maps.Copy(all, t.types)
		t.typesMu.Unlock()
	}
	return all
}

// learn records the type of a metric family. It locks typesMu instead of t.mu, because a scrape holds t.mu from its
// start to its end.
func (t *target) learn(family []byte, kind model.MetricType) {
	t.typesMu.Lock()
	defer t.typesMu.Unlock()
	if t.types[string(family)] != kind {
		t.types[string(family)] = kind
	}
}
