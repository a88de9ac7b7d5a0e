package runmetrics

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
)

// ServeOptions configure Serve.
type ServeOptions struct {
	Dirs []string
	// Later returns further runs, by the value of their label run. Serve opens them at the first query, or returns an error
	// to the client if there are too many. Nil means none.
	Later func() map[string]string
	// Pages handles requests outside the query API. Nil means a page that describes the API.
	Pages http.Handler
	// Addr is the address of the server, HOST:PORT. Public permits an address that other machines can reach; each request
	// then needs a token.
	Addr   string
	Public bool
	// Version is the version of Stormglass.
	Version string
	// Ready handles the start of the server. Serve calls it, with the URL of the API and the runs in the order of Dirs,
	// when the server accepts requests.
	Ready func(url string, runs []Served)
}

// Served describes a run that Serve serves.
type Served struct {
	Name     string    `json:"run"` // the value of the label run
	Dir      string    `json:"dir"`
	Start    time.Time `json:"start"`                 // first scrape
	End      time.Time `json:"end"`                   // last scrape
	Interval float64   `json:"scrapeIntervalSeconds"` // scrape interval or, of a downsampled run, the time between two samples
}

// Serve serves recorded runs through Prometheus' query API until ctx ends, and then returns nil. The samples include
// the results of the rules that Stormglass provides, except for downsampled runs. Each series has the label run.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	if err := loopback.Check(o.Addr, o.Public); err != nil {
		return exitcode.Usagef("--listen: %w", err)
	}
	names, err := UniqueNames(o.Dirs)
	if err != nil {
		return err
	}
	var all opened
	defer func() { err = errors.Join(err, all.close()) }()
	for i, dir := range o.Dirs {
		if err := all.open(ctx, names[i], dir); err != nil {
			return err
		}
	}
	samples, now, every := archive.Merge(all.samples...), all.latest, all.interval
	if o.Later != nil {
		l := &later{ctx: ctx, all: &all, dirs: o.Later}
		samples, now = l, func() time.Time { l.once.Do(l.open); return all.latest() }
		every = func() time.Duration { l.once.Do(l.open); return all.interval() }
	}
	past := observe.Past{Every: every}
	if past.Kinds, err = kinds(ctx, archive.Merge(all.samples...)); err != nil {
		return err
	}
	listener, err := observe.Listen(o.Addr, o.Public)
	if err != nil {
		return exitcode.Environmentf("--listen: %w", err)
	}
	token := ""
	if o.Public {
		token = rand.Text()
	}
	server, err := observe.Start(listener, observe.Config{
		Public: o.Public, Token: token, Pages: o.Pages, Recorder: past, Samples: samples, Version: o.Version, Now: now,
	})
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	o.Ready(server.URL(), all.served)
	<-ctx.Done()
	return server.Close()
}

// opened holds open runs.
type opened struct {
	runs    []*Run
	samples []storage.Queryable
	served  []Served
	mu      sync.Mutex
	every   time.Duration // the longest time between two samples
	end     time.Time     // end of the latest run
}

func (o *opened) open(ctx context.Context, name, dir string) error {
	run, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	o.runs = append(o.runs, run)
	samples := run.Raw()
	if run.rec.Downsampled == nil {
		if samples, err = run.Replayed(ctx); err != nil {
			return err
		}
	}
	o.samples = append(o.samples, archive.WithLabels(samples, map[string]string{RunLabel: name}))
	o.served = append(o.served, Served{name, dir, run.Start, run.End, run.Interval.Seconds()})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.every = max(o.every, run.Interval)
	if run.End.After(o.end) {
		o.end = run.End
	}
	return nil
}

// latest returns the end of the latest run, or the current time if no run is open.
func (o *opened) latest() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end.IsZero() {
		return time.Now()
	}
	return o.end
}

func (o *opened) interval() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.every
}

func (o *opened) close() error {
	var errs []error
	for _, r := range o.runs {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// maxLater is the maximum number of runs that Serve opens at the first query. Each takes about a second of CPU time, to
// evaluate the rules, and some megabytes of memory.
const maxLater = 50

// later is a storage of runs that are opened at the first query. A run that cannot be read is left out.
type later struct {
	ctx  context.Context
	all  *opened
	dirs func() map[string]string

	once    sync.Once
	samples storage.Queryable
	err     error
}

func (l *later) open() {
	dirs := l.dirs()
	if n := len(dirs); n > maxLater {
		l.err = fmt.Errorf("the folder contains %d runs, but queries can read at most %d (name the runs: loadgen serve DIR...)", n, maxLater)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		_ = l.all.open(l.ctx, name, dirs[name]) // the page lists damaged runs
	}
	l.samples = archive.Merge(l.all.samples...)
}

// Querier implements storage.Queryable.
func (l *later) Querier(mint, maxt int64) (storage.Querier, error) {
	l.once.Do(l.open)
	if l.err != nil {
		return nil, l.err
	}
	return l.samples.Querier(mint, maxt)
}

// UniqueNames returns a name for each directory: the shortest suffix of its path that is unique. It returns a usage error
// if a directory appears twice.
func UniqueNames(dirs []string) ([]string, error) {
	var paths []string
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, exitcode.Usagef("%s: %w", dir, err)
		}
		paths = append(paths, filepath.ToSlash(abs))
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		parts := strings.Split(strings.Trim(p, "/"), "/")
		for n := 1; n <= len(parts); n++ {
			names[i] = strings.Join(parts[len(parts)-n:], "/")
			if !endsAnother(paths, i, names[i]) {
				break
			}
		}
		for j := range i {
			if paths[j] == p {
				return nil, exitcode.Usagef("%s appears twice in the arguments (specify each run once)", dirs[i])
			}
		}
	}
	return names, nil
}

// endsAnother reports whether a path other than paths[i] ends with name.
func endsAnother(paths []string, i int, name string) bool {
	for j, p := range paths {
		if j != i && strings.HasSuffix(p, "/"+name) {
			return true
		}
	}
	return false
}

// kinds derives the types of metrics from their names, because the archive has no types. It omits metrics whose names
// do not show the type.
func kinds(ctx context.Context, samples storage.Queryable) (map[string]model.MetricType, error) {
	q, err := samples.Querier(0, maxTime)
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	defer q.Close()
	names, _, err := q.LabelValues(ctx, model.MetricNameLabel, nil)
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	all := map[string]model.MetricType{}
	for _, name := range names {
		name = strings.Clone(name) // name may point into a file that is closed before the server sends it
		if family, ok := strings.CutSuffix(name, "_bucket"); ok {
			all[family] = model.MetricTypeHistogram
		} else if strings.HasSuffix(name, "_total") {
			all[name] = model.MetricTypeCounter
		}
	}
	return all, nil
}
