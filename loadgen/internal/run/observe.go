package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/diagnosis"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

const planeGone = time.Second

// ObserveOptions are the options of Observe.
type ObserveOptions struct {
	// Dir is the directory of a running control plane.
	Dir string
	// Addr is the address to listen on, HOST:PORT. Public permits an address that other machines can reach.
	Addr   string
	Public bool
	// Interval is the time between scrapes; zero means 5 s.
	Interval time.Duration
	// Retention is the minimum time for which Observe keeps samples. It removes all samples when it returns.
	Retention time.Duration
	// RemoteWrite configures a receiver for the samples. The zero value means no receiver.
	RemoteWrite remotewrite.Config
	// Log prints a line for the user.
	Log func(format string, args ...any)
	// Ready is a function that Observe calls when it serves the API. url is the API's URL. config is the directory of a
	// configuration with which another Prometheus server can scrape the same targets.
	Ready func(url, config string)
}

// Observe scrapes a control plane, and serves its metrics and the alerts of package alerts. It returns nil when ctx ends or
// the control plane stops.
func Observe(ctx context.Context, o ObserveOptions) (err error) {
	if err := loopback.Check(o.Addr, o.Public); err != nil {
		return exitcode.Usagef("--listen: %w", err)
	}
	cluster, err := running(o.Dir)
	if err != nil {
		return err
	}
	client, err := receiver(o.RemoteWrite)
	if err != nil {
		return err
	}
	listener, err := observe.Listen(o.Addr, o.Public)
	if err != nil {
		return exitcode.Environmentf("--listen: %w", err)
	}
	dir, err := os.MkdirTemp("", "stormglass-observe-")
	if err != nil {
		return exitcode.EnvironmentError(errors.Join(err, listener.Close()))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var targets []control.ScrapeTarget
	for _, c := range cluster.Components {
		targets = append(targets, c.Scrape)
	}
	recorder, err := scrape.Open(dir, targets, scrape.Options{Interval: o.Interval, Retention: o.Retention, Log: o.Log})
	if err != nil {
		return exitcode.EnvironmentError(errors.Join(err, listener.Close()))
	}
	defer func() { err = errors.Join(err, recorder.Close()) }()
	server, err := observe.Start(listener, observe.Config{
		Public: o.Public, Recorder: recorder, Rules: alerts.Files(), Retention: o.Retention, Version: Version(),
	})
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	config, err := scrapeconfig.Write(o.Dir, targets, scrapeconfig.Options{
		Interval: recorder.Interval(), Rules: alerts.Files(), Owner: "the control plane in " + cluster.Dir,
	})
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	url := filepath.Join(o.Dir, observeURLFile)
	if err := os.WriteFile(url, []byte(server.URL()+"\n"), 0o600); err != nil {
		return exitcode.EnvironmentError(err)
	}
	defer func() { err = errors.Join(err, os.Remove(url)) }()
	o.Ready(server.URL(), config)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	diagnosed := make(chan struct{})
	go func() {
		defer close(diagnosed)
		diagnose(ctx, recorder, o.Log)
	}()
	defer func() { stop(); <-diagnosed }() // stop before the archive is closed, because diagnose reads it
	recorded := make(chan error, 1)
	var sender *remotewrite.Sender
	if client != nil {
		sender = newSender(client, recorder, rundir.Name(o.Dir, ""), o.Log)
	}
	go func() { recorded <- runSending(ctx, recorder.Run, sender, nil) }()
	gone := awaitGone(ctx, o.Dir)
	select {
	case err = <-recorded: // the recorder fails only if it cannot store samples
	case <-gone:
		if ctx.Err() == nil {
			o.Log("the control plane has stopped")
		}
		stop()
		err = <-recorded
	}
	if sender != nil {
		sent := sender.Stats()
		o.Log("remote write: %d samples sent to %s, %d refused, %d not sent", sent.Sent, sent.URL, sent.Refused, sent.Unsent)
	}
	return exitcode.EnvironmentError(err)
}

// observeURLFile is the file in a control plane's directory that contains the URL at which Observe serves its metrics.
const observeURLFile = "observe.url"

// ObserverURL returns the URL of the observer that another process serves for the control plane in dir.
func ObserverURL(dir string) (string, error) {
	if _, err := running(dir); err != nil {
		return "", err
	}
	text, err := userfile.Read(filepath.Join(dir, observeURLFile), userfile.Text)
	if errors.Is(err, fs.ErrNotExist) {
		return "", exitcode.Usagef("%s: `loadgen observe` does not run for this control plane (start it with `loadgen observe --dir %s`)", dir, shell.Quote(dir))
	}
	return strings.TrimSpace(string(text)), exitcode.EnvironmentError(err)
}

// diagnoseEvery is the number of scrapes from one diagnosis to the next.
const diagnoseEvery = 3

// diagnose diagnoses the current state once per diagnoseEvery scrapes until ctx ends, and logs changes.
func diagnose(ctx context.Context, recorder *scrape.Recorder, log func(format string, args ...any)) {
	present := presentLog{live: diagnosis.Live{Since: time.Now(), Step: recorder.Interval()}, log: log}
	samples := archive.Evaluating(recorder.Live())
	_ = wait.PollUntilContextCancel(ctx, diagnoseEvery*recorder.Interval(), false, func(ctx context.Context) (bool, error) {
		options := present.live.Options(time.Now())
		d, err := diagnosis.Diagnose(ctx, samples, options)
		if ctx.Err() == nil {
			present.take(options, d, err)
		}
		return false, nil
	})
}

// presentLog logs diagnoses of the current state, and errors. It omits a line that equals the previous one.
type presentLog struct {
	live diagnosis.Live
	told string // last logged line: a diagnosis or an error
	log  func(format string, args ...any)
}

// take logs the diagnosis d, or err if there is no diagnosis, but omits a repeated line. It passes d to the live
// diagnosis even if there was no data, so that a comparison period without data is replaced.
func (p *presentLog) take(o diagnosis.Options, d result.Diagnosis, err error) {
	noData := exitcode.Of(err) == exitcode.NoData
	if err == nil || noData {
		p.live.Saw(d)
	}
	now := d.Gist()
	if err != nil {
		now = err.Error()
	}
	early := (noData || err == nil && d.Answer == result.CannotTell) && o.CalmByDefault && o.Calm.To.Sub(o.Calm.From) < o.Under.To.Sub(o.Under.From) // not enough recorded yet
	if early || now == p.told {
		return
	}
	p.told = now
	if err != nil {
		p.log("no diagnosis: %s", now)
		return
	}
	if len(d.Causes) == 0 {
		p.log("diagnosis: %s", strings.Join(append([]string{d.Answer}, d.Doubts...), "; "))
	}
	for _, e := range d.Symptoms {
		p.log("diagnosis: symptom without a known cause: %s of %s", e.What, e.Component)
	}
	for _, c := range d.Causes {
		p.log("diagnosis: %s: %s", c.Title, c.Sentence)
	}
	for _, c := range d.Limits {
		p.log("diagnosis: load or machine: %s: %s", c.Title, c.Sentence)
	}
}

func running(dir string) (control.Cluster, error) {
	cluster, err := control.Load(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return cluster, exitcode.Usagef("%s: there is no control plane in this directory (start one with `controlplane up --dir %s`)", dir, shell.Quote(dir))
	}
	if err != nil {
		return cluster, exitcode.EnvironmentError(err)
	}
	up, err := control.InUse(dir)
	if err == nil && !up {
		err = fmt.Errorf("%s: the control plane is stopped (start it with `controlplane up --dir %s`)", dir, shell.Quote(dir))
	}
	return cluster, exitcode.EnvironmentError(err)
}

// awaitGone returns a channel that is closed when no live process uses the control plane in dir, or when ctx ends.
func awaitGone(ctx context.Context, dir string) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = wait.PollUntilContextCancel(ctx, planeGone, false, func(context.Context) (bool, error) {
			up, err := control.InUse(dir)
			return err == nil && !up, nil
		})
	}()
	return gone
}
