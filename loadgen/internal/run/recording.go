package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/record"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// recorder makes the archive of a run: package record's scrapes,
// package promimport's copies from a Prometheus.
type recorder interface {
	Run(context.Context) error
	ScrapeNow(context.Context) (time.Time, error)
	Scrapes() result.Scrapes
	Close() error
}

// clockNote is the difference of clocks that is worth a word.
const clockNote = 5 * time.Second

// listen takes the address that the run is to be observed at, before anything
// is started that would be in vain.
func (r *run) listen() error {
	if r.Observe == "" {
		return nil
	}
	if err := loopback.Check(r.Observe, r.ObservePublic); err != nil {
		return exitcode.Usagef("--observe: %w", err)
	}
	var err error
	if r.listener, err = observe.Listen(r.Observe, r.ObservePublic); err != nil {
		return exitcode.Environmentf("--observe: %w", err)
	}
	return nil
}

// findPrometheus looks for the cluster's targets in the Prometheus that the
// metrics are to be read from, if there is one.
func (r *run) findPrometheus(ctx context.Context) error {
	if r.Prometheus == nil {
		return nil
	}
	var err error
	if r.source, err = promimport.New(*r.Prometheus); err != nil {
		return exitcode.Usagef("--prometheus: %w", err)
	}
	if err := r.source.Find(ctx); err != nil {
		return exitcode.Environmentf("--prometheus: %w", err)
	}
	every := r.source.Interval()
	r.scenario.Record.Interval = max(r.scenario.Record.Interval, scenario.Duration(every))
	var instances []string
	for _, t := range r.source.Targets() {
		instances = append(instances, t.Instance)
	}
	r.target.ScrapedElsewhere(r.source.URL(), instances)
	r.target.Notes = append(r.target.Notes, fmt.Sprintf(
		"nothing is scraped: the metrics of %s are read from %s, which scrapes them every %s; each phase waits for that before it begins and after it ends",
		strings.Join(r.source.Jobs(), ", "), r.source.URL(), every))
	if ahead := r.source.Ahead(); ahead.Abs() > clockNote {
		r.target.Notes = append(r.target.Notes, fmt.Sprintf("its clock is %s ahead of ours, which is reckoned with", ahead.Round(time.Second)))
	}
	return nil
}

// jobs are the kinds of component whose metrics are on offer, and offer says what
// to do about one that is not.
func (r *run) jobs() (jobs []string, offer string) {
	if r.source != nil {
		return r.source.Jobs(), "--prometheus-job OURS=THEIRS says what your Prometheus calls them"
	}
	return r.target.Jobs(), "--targets FILE names them"
}

// openRecorder makes the archive, and lets it be looked at while it is written.
func (r *run) openRecorder() error {
	o := record.Options{
		Interval: r.scenario.Record.Interval.D(), Drop: r.scenario.Record.Drop,
		Extra: gate.Families(r.scenario), Registry: r.registry, Log: r.step,
	}
	if r.source != nil {
		copies, err := r.source.Record(r.dir, o)
		if err != nil {
			return exitcode.Environmentf("%w", err)
		}
		r.recorder = copies
		return nil
	}
	scrapes, err := record.Open(r.dir, r.target.Scrape, o)
	if err != nil {
		return exitcode.Environmentf("%w", err)
	}
	r.recorder = scrapes
	if r.listener == nil {
		return nil
	}
	listener := r.listener
	r.listener = nil // the server closes it
	r.observer, err = observe.Start(listener, observe.Config{
		Public: r.ObservePublic, Recorder: scrapes, Metrics: r.registry, Rules: alerts.Files(), Version: Version(),
	})
	if err != nil {
		return exitcode.Environmentf("--observe: %w", err)
	}
	return r.announceObserver()
}

// announceObserver prints where the run can be observed, and writes how a Prometheus
// of the user's own scrapes the same.
func (r *run) announceObserver() error {
	url := r.observer.URL()
	r.step("Prometheus' query API at %s (a data source for Grafana; promtool query instant %s up)", url, url)
	base, owner := r.dir, "the run in "+r.dir
	if r.plane != nil {
		base, owner = filepath.Join(r.dir, planeDir), "the control plane of the run in "+r.dir
	}
	targets := append(r.target.Scrape[:len(r.target.Scrape):len(r.target.Scrape)],
		control.ScrapeTarget{Job: "loadgen", Instance: "loadgen", URL: url + "/metrics"})
	var err error
	r.scrapeConfig, err = scrapeconfig.Write(base, targets, scrapeconfig.Options{
		Interval: r.scenario.Record.Interval.D(), Rules: alerts.Files(), Owner: owner,
	})
	if err != nil {
		return exitcode.Environmentf("%w", err)
	}
	r.step("for a Prometheus of your own: prometheus --config.file=%s", filepath.Join(r.scrapeConfig, scrapeconfig.ServerFile))
	return nil
}

// closeRecorder ends the observation and the recording. What it wrote for
// another Prometheus names addresses and keys that go with the run.
func (r *run) closeRecorder() error {
	var errs []error
	if r.listener != nil {
		errs = append(errs, r.listener.Close())
		r.listener = nil
	}
	if r.observer != nil {
		errs = append(errs, r.observer.Close())
		r.observer = nil
	}
	if r.scrapeConfig != "" {
		errs = append(errs, os.RemoveAll(r.scrapeConfig))
	}
	if r.recorder != nil {
		errs = append(errs, r.recorder.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return exitcode.Environmentf("close the archive: %w", err)
	}
	return nil
}
