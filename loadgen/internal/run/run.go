// Package loadgen runs a scenario against a control plane, from the plan to
// the report. One run is:
//
//	scenario -> gates compiled -> run directory -> target ready -> recorder
//	-> nodes -> phases -> stop in reverse -> measurements -> Judge
//
// Everything a run learns is written to its directory as it goes on, so that
// a run that was killed can still be reported; Judge reads nothing else.
package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/generator"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// planeDir is the directory of a bundled plane in a run directory.
const planeDir = "controlplane"

// windUpTimeout bounds what is done after the phases, or after an interrupt:
// deleting from a user's cluster takes the longest.
const windUpTimeout = 5 * time.Minute

// Options of a run.
type Options struct {
	Scenario *scenario.Scenario
	// Overrides are the --set values the scenario was read with, for the record.
	Overrides []string
	// WithoutGates are those that were left out of the scenario, for the record.
	WithoutGates []string
	// Out is the run directory; empty means runs/TIME-NAME.
	Out string
	// Kubeconfig of a user's cluster, and its context; empty means a bundled
	// plane, started for this run by the ControlPlane binary.
	Kubeconfig   string
	Context      string
	Targets      string // file of further scrape targets for a user's cluster
	ControlPlane string // path of the binary; empty means beside ours, then PATH
	// Observe is the address, HOST:PORT, at which the run is served by
	// Prometheus' query API while it goes on; empty means nowhere. ObservePublic
	// allows one that other machines reach.
	Observe       string
	ObservePublic bool
	// Prometheus scrapes the user's cluster already: its samples are copied, and
	// nothing is scraped. Nil means there is none.
	Prometheus *promimport.Config
	// Hurry is closed when the user, who has ended the context, will not wait for
	// the end in order: what is still to be removed stays, the report is written.
	// Nil: they always wait.
	Hurry <-chan struct{}
	// Confirm is asked before anything is made in a user's cluster.
	Confirm  func(context.Context, cluster.Plan) (bool, error)
	Progress Progress
}

// run is one run under way.
type run struct {
	Options
	scenario *scenario.Scenario
	gates    []gate.Compiled
	dir      string
	made     []string         // directories made for dir, itself first
	lock     *os.File         // of dir: says that its process lives
	scratch  *cluster.Scratch // what dir is, where nodes run alone
	info     result.Run
	m        result.Measurements

	registry *prometheus.Registry
	timeline *timeline.Writer
	recorder recorder
	samples  *samples.Recorder
	self     *generator.SelfMeter
	plane    *control.Supervisor // nil on a user's cluster
	// supervisor of the plane; nil on a user's cluster, which has no such faults.
	supervisor supervisor
	touched    bool // the target holds something of ours
	nodesAlone bool // nothing but simulated nodes is run
	target     *cluster.Target
	fleet      *node.Fleet
	// nodesStalled is for how long the generator was stalled while they registered.
	nodesStalled time.Duration
	workload     *workload.Workload
	loads        *loads
	live         liveView
	// lost is closed when what the run is aimed at is, for the reason in loss.
	lost    chan struct{}
	loss    error
	unwatch func()
	// source of the archive, if it is not scraped.
	source *promimport.Source
	// What the run can be observed by: the listener until there is an observer,
	// and the folder with the configuration for another Prometheus.
	listener     net.Listener
	observer     *observe.Server
	scrapeConfig string
}

// Run runs a scenario and returns its directory. An error means that there is
// nothing to judge; a run that was interrupted, or whose environment failed
// under it, has a directory that says so.
func Run(ctx context.Context, o Options) (dir string, err error) {
	gates, err := gate.Compile(o.Scenario)
	if err != nil {
		return "", exitcode.UsageError(err)
	}
	if err := CheckDescriptors(o.Scenario); err != nil {
		return "", err
	}
	r := &run{Options: o, scenario: o.Scenario, gates: gates, registry: prometheus.NewRegistry()}
	defer r.announceSignals(ctx)()
	defer r.unlock()
	watched, err := r.comeUp(ctx)
	if err != nil {
		r.release()
		if r.touched && ctx.Err() == nil {
			r.step("failed: %v", err)
		}
		left := r.discard(err)
		if ctx.Err() != nil {
			return "", interruptedError{left}
		}
		return "", errors.Join(err, left)
	}
	r.execute(ctx, watched)
	r.release()
	return r.dir, r.finish()
}

// comeUp gets everything ready, up to the point where there is something to
// report, and gives the context that ends when what the run is aimed at is lost.
func (r *run) comeUp(ctx context.Context) (watched context.Context, err error) {
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	watched = r.watch(ctx)
	if err := r.connect(watched); err != nil {
		return nil, r.firstCause(ctx, err)
	}
	return watched, nil
}

// prepare makes the run directory and finds or starts what the run is aimed at.
func (r *run) prepare(ctx context.Context) error {
	id, err := rundir.NewID()
	if err != nil {
		return err
	}
	r.info = result.Run{
		ID: id, Scenario: r.scenario.Name, Started: time.Now().UTC(), Seed: r.scenario.Seed,
		Variant: r.scenario.Variant, Warnings: r.scenario.Warnings(),
		Overrides: r.Overrides, WithoutGates: r.WithoutGates, Host: hostFacts(),
		Versions: result.Versions{Stormglass: Version(), Go: runtime.Version()},
	}
	if r.Kubeconfig == "" {
		r.info.Warnings = append(r.info.Warnings, gate.Warnings(r.scenario)...)
	}
	for _, w := range r.info.Warnings {
		r.step("warning: %s", w)
	}
	if err := r.listen(); err != nil {
		return err
	}
	if r.dir, r.made, err = rundir.Make(r.Out, r.scenario.Name, r.info.Started); err != nil {
		return err
	}
	if r.lock, err = cluster.LockDir(r.dir); err != nil {
		return exitcode.Environmentf("--out %s: %w", r.dir, userfile.Cause(err))
	} else if r.lock == nil {
		r.dir = ""
		return exitcode.Usagef("--out %s: another run has just taken it (name a new one)", r.Out)
	}
	r.sweep()
	if r.Kubeconfig != "" {
		if err := r.prepareCluster(ctx); err != nil {
			return err
		}
	}
	for name, data := range r.scenario.Bundle() {
		if err := rundir.WriteFile(filepath.Join(r.dir, name), data); err != nil {
			return err
		}
	}
	resolved, err := r.scenario.Resolved()
	if err != nil {
		return err
	}
	if err := rundir.WriteFile(filepath.Join(r.dir, result.ScenarioFile), resolved); err != nil {
		return err
	}
	if r.info.Files, err = result.Digest(r.dir); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	if r.timeline, err = timeline.Open(r.dir); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	if err := r.timeline.Register(r.registry); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	r.info.Cluster.Bundled = r.Kubeconfig == ""
	if err := rundir.WriteInfo(r.dir, r.info); err != nil {
		return err
	}
	r.step("run directory %s, seed %d", r.dir, r.info.Seed)
	if r.Kubeconfig == "" {
		return r.preparePlane(ctx)
	}
	return nil
}

func (r *run) preparePlane(ctx context.Context) error {
	done := r.waiting("the control plane to be ready")
	var err error
	r.plane, err = startPlane(ctx, r.ControlPlane, filepath.Join(r.dir, planeDir), r.scenario, r.Progress.Step)
	done()
	if err != nil {
		return err
	}
	client, err := control.Dial(r.plane.Cluster().Dir)
	if err != nil {
		return exitcode.Environmentf("the control plane's supervisor: %w", err)
	}
	r.supervisor = client
	if err := checkFaults(ctx, client, r.scenario); err != nil {
		return err
	}
	if r.target, err = cluster.FromPlane(r.plane.Cluster(), r.info.ID, r.scenario); err != nil {
		return err
	}
	r.target.Waiting = r.waiting
	r.target.NodesAlone = r.nodesAlone
	return nil
}

func (r *run) step(format string, args ...any) { r.Progress.Step(fmt.Sprintf(format, args...)) }

func (r *run) event(at time.Time, kind result.EventKind, name, detail string) {
	r.record(result.Event{Time: at, Kind: kind, Name: name, Detail: detail})
}

// record appends an event to the timeline.
func (r *run) record(e result.Event) {
	e.Time = e.Time.UTC()
	if err := r.timeline.Append(e); err != nil {
		r.step("timeline: %v", err)
	}
}

// ended tells an interrupt of the user's from a failure.
func (r *run) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
