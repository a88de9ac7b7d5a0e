package run

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/result"
)

// recorder records metrics in the archive of a run. Package scrape scrapes them. Package promimport copies them from a
// Prometheus server.
type recorder interface {
	Run(context.Context) error
	ScrapeNow(context.Context) (time.Time, error)
	Scrapes() result.Scrapes
	Close() error
}

// listen opens the address at which the run serves its metrics, before the run starts anything. It returns nil if
// Options.Observe is empty or the run scrapes nothing.
func listen(o Options) (net.Listener, error) {
	if o.Observe == "" || o.Prometheus != nil {
		return nil, nil
	}
	if err := loopback.Check(o.Observe, o.ObservePublic); err != nil {
		return nil, exitcode.Usagef("--observe: %w", err)
	}
	listener, err := observe.Listen(o.Observe, o.ObservePublic)
	if err != nil {
		return nil, exitcode.Environmentf("--observe: %w", err)
	}
	return listener, nil
}

// archiver records the metrics of a run in its archive. It can also serve the archive over HTTP, and send the samples by
// remote write.
type archiver struct {
	recorder
	closers []func() error      // functions to call at the end, in this order
	sender  *remotewrite.Sender // sender to the remote-write receiver; nil if there is no receiver
	theirs  gate.Source         // the user's Prometheus server; nil: the run scrapes by itself
	hurry   <-chan struct{}
}

type archiverOptions struct {
	console
	dir      string
	plan     *plan.Plan
	targets  []control.ScrapeTarget
	bundled  bool
	source   *promimport.Source // the user's Prometheus server; nil if the run scrapes targets
	listener net.Listener       // listener of the query API; nil if the run serves no metrics
	public   bool
	registry *prometheus.Registry
	receiver *remotewrite.Client // client of the remote-write receiver; nil without a receiver
	name     string              // name of the run at the receiver
	extra    []string            // metrics to keep in addition to the metrics that gates use
}

func openArchiver(o archiverOptions) (*archiver, error) {
	options := scrape.Options{
		Interval: o.plan.Record.Interval.D(), Drop: o.plan.Record.Drop,
		Extra: append(gate.Families(o.plan), o.extra...), Registry: o.registry, Log: o.step,
	}
	if o.source != nil {
		copies, err := o.source.Record(o.dir, options)
		if err != nil {
			return nil, exitcode.EnvironmentError(err)
		}
		r := &archiver{recorder: copies, closers: []func() error{copies.Close}, hurry: o.hurry, theirs: o.source}
		if o.receiver != nil {
			r.sender = newSender(o.receiver, copies.Own(), o.name, o.step, ownSeries())
		}
		return r, nil
	}
	scrapes, err := scrape.Open(o.dir, o.targets, options)
	if err != nil {
		return nil, exitcode.EnvironmentError(err)
	}
	r := &archiver{recorder: scrapes, closers: []func() error{scrapes.Close}, hurry: o.hurry}
	if o.receiver != nil {
		r.sender = newSender(o.receiver, scrapes, o.name, o.step)
	}
	if o.listener == nil {
		return r, nil
	}
	if err := r.serve(o, scrapes); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// serve starts the query API, and writes a configuration with which the user's own Prometheus server can scrape the
// same targets.
func (r *archiver) serve(o archiverOptions, scrapes *scrape.Recorder) error {
	server, err := observe.Start(o.listener, observe.Config{
		Public: o.public, Recorder: scrapes, Metrics: o.registry, Rules: alerts.Files(), Version: Version(),
	})
	if err != nil {
		return exitcode.Environmentf("--observe: %w", err)
	}
	r.closers = append([]func() error{server.Close}, r.closers...)
	url := server.URL()
	o.step("Prometheus' query API is at %s (add it to Grafana as a data source, or run: promtool query instant %s up)", url, url)
	base, owner := o.dir, "the run in "+o.dir
	if o.bundled {
		base, owner = filepath.Join(o.dir, planeDir), "the control plane of the run in "+o.dir
	}
	targets := append(o.targets[:len(o.targets):len(o.targets)],
		control.ScrapeTarget{Job: "loadgen", Instance: "loadgen", URL: url + "/metrics"})
	config, err := scrapeconfig.Write(base, targets, scrapeconfig.Options{
		Interval: o.plan.Record.Interval.D(), Rules: alerts.Files(), Owner: owner,
	})
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	// Remove the configuration: its addresses and credentials are not valid after the run.
	r.closers = append(r.closers, func() error { return os.RemoveAll(config) })
	o.step("to scrape with your own Prometheus, run: prometheus --config.file=%s", filepath.Join(config, scrapeconfig.ServerFile))
	return nil
}

// live returns the metrics that the run has scraped so far, or nil if it copies metrics from a Prometheus server.
func (r *archiver) live() *archive.Archive {
	if scrapes, ok := r.recorder.(*scrape.Recorder); ok {
		return archive.Evaluating(scrapes.Live())
	}
	return nil
}

func (r *archiver) close() error {
	var errs []error
	for _, closer := range r.closers {
		errs = append(errs, closer())
	}
	if err := errors.Join(errs...); err != nil {
		return exitcode.Environmentf("close the archive: %w (%s)", err, rundir.DiskHint(err))
	}
	return nil
}
