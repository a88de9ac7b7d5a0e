package runmetrics

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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
	// Addr is the address of the server, HOST:PORT. Public permits an address that other machines can reach.
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
	Start    time.Time `json:"start"` // first scrape
	End      time.Time `json:"end"`   // last scrape
	Interval float64   `json:"scrapeIntervalSeconds"`
}

// Serve serves recorded runs through Prometheus' query API until ctx ends, and then returns nil. It includes the
// results of the rules that Stormglass provides. Each series has the label run.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	if err := loopback.Check(o.Addr, o.Public); err != nil {
		return exitcode.Usagef("--listen: %w", err)
	}
	names, err := uniqueNames(o.Dirs)
	if err != nil {
		return err
	}
	var all []storage.Queryable
	var served []Served
	past := observe.Past{}
	var end time.Time
	for i, dir := range o.Dirs {
		run, refused := Open(ctx, dir)
		if refused != nil {
			return refused
		}
		defer func() { err = errors.Join(err, run.Close()) }()
		samples, failed := run.Replayed(ctx)
		if failed != nil {
			return failed
		}
		all = append(all, archive.WithLabels(samples, map[string]string{RunLabel: names[i]}))
		served = append(served, Served{names[i], dir, run.Start, run.End, run.Interval.Seconds()})
		past.Every = max(past.Every, run.Interval)
		if run.End.After(end) {
			end = run.End
		}
	}
	samples := archive.Merge(all...)
	if past.Kinds, err = kinds(ctx, samples); err != nil {
		return err
	}
	listener, err := observe.Listen(o.Addr, o.Public)
	if err != nil {
		return exitcode.Environmentf("--listen: %w", err)
	}
	server, err := observe.Start(listener, observe.Config{
		Public: o.Public, Recorder: past, Samples: samples, Version: o.Version, Now: func() time.Time { return end },
	})
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	o.Ready(server.URL(), served)
	<-ctx.Done()
	return server.Close()
}

// uniqueNames returns a name for each directory: the shortest suffix of its path that is unique.
func uniqueNames(dirs []string) ([]string, error) {
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
