// Package run runs a scenario against a control plane. A run has stages, which are created in this order and stopped
// in the reverse order:
//
//	directory    created and locked; credentials that killed runs left are removed
//	target       the run's own control plane, started and ready, or a user's cluster, after the user's confirmation
//	loss watch   ends the run when the target is lost
//	recording    scrapes metrics or copies them from a Prometheus, and serves them by a query API
//	samples      results of each load, ten times a second
//	self meter   resource use and delays of the generator itself
//	workload     the run's workloads, and the tracker of their pods
//	follower     watches of the objects in conditions and transitions
//	nodes        simulated in this process or by the workers, registered before the first phase
//	workers      other loadgen processes that take a share of the loads and nodes
//	loads        the background loads and the loads of each phase
//	phases       in the order of the scenario, with their faults
//	teardown     the scenario's teardown actions
//
// A run writes its measurements to its directory after each phase, so a killed run can still be judged. The function
// Nodes runs simulated nodes without the other stages.
package run

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/follow"
	"github.com/stormglass/stormglass/loadgen/internal/generator"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/result"
)

// windUpTimeout is the time limit for the work after the phases or after an interrupt. Deleting objects from a user's
// cluster takes the longest.
const windUpTimeout = 5 * time.Minute

// lostStopTimeout and lostCleanupTimeout replace windUpTimeout if the run has lost its target. The first is for stopping
// the nodes, the second for removing the run's objects and its lock. They are not 0, because a user's cluster may come
// back.
const (
	lostStopTimeout    = 5 * time.Second
	lostCleanupTimeout = 15 * time.Second
)

// windUpLimit returns ifLost if the target is lost; otherwise windUpTimeout.
func windUpLimit(lost bool, ifLost time.Duration) time.Duration {
	if lost {
		return ifLost
	}
	return windUpTimeout
}

type run struct {
	journal
	o         Options
	info      result.Run
	dir       *Directory
	target    *target
	recording *recording
	samples   *samples.Recorder
	self      *generator.SelfMeter
	counted   *generator.Instructions
	delays    *generator.RunDelay
	workload  *workload.Workload
	objects   *objects.Objects
	follow    *follow.Follower // nil if the scenario has no conditions or transitions over objects
	nodes     *nodes
	fleet     *workers.Fleet // nil: no workers, so this process runs all loads and nodes
	loads     *loads
	custom    *custom
	pause     *load.Pause
	display   *display
	phases    *phases
	aborts    *aborts
}

// Run runs a scenario and returns the run's directory. It returns an error if the run cannot start or cannot write its
// results; such a run cannot be judged. If a started run is interrupted or its environment fails, the files in the
// directory say so.
func Run(ctx context.Context, o Options) (dir string, err error) {
	gates, ends, err := o.compiled()
	if err == nil {
		err = o.checkReleases(ctx)
	}
	if err != nil {
		return "", err
	}
	c := console{o.Progress, o.Hurry}
	defer c.announceSignals(ctx, o.Kubeconfig.Files != "")()
	var started undo
	r, watched, err := prepare(ctx, o, gates, ends, c, &started)
	if err != nil {
		err = hinted(err)
		left := started.undo(err)
		if ctx.Err() != nil {
			return "", interruptedError{left}
		}
		return "", errors.Join(err, left)
	}
	r.execute(ctx, watched)
	return r.dir.Path, r.close()
}

// prepare creates and starts all stages before the phases. watched is a context that ends with ctx or when the target is
// lost. prepare adds functions that undo its steps to started; if it fails, the caller calls them.
func prepare(ctx context.Context, o Options, gates []gate.Compiled, ends *aborts, c console, started *undo) (r *run, watched context.Context, err error) {
	r = &run{o: o, journal: journal{console: c}, aborts: ends, pause: load.NewPause()}
	registry, err := o.registry()
	if err != nil {
		return nil, nil, err
	}
	if r.info, err = describe(o); err != nil {
		return nil, nil, err
	}
	r.info.AbortOn = ends.texts()
	for _, w := range r.info.Warnings {
		c.step("warning: %s", w)
	}
	client, err := receiver(o.RemoteWrite)
	if err != nil {
		return nil, nil, err
	}
	listener, err := listen(o)
	if err != nil {
		return nil, nil, err
	}
	if listener != nil {
		started.add(func() error { _ = listener.Close(); return nil }) // the recording may have closed it
	}
	if r.fleet, err = workers.Open(o.Workers, Build, c.step); err != nil {
		return nil, nil, err
	}
	if r.dir, err = MakeDirectory(o.Out, o.Scenario.Name, r.info.Started); err != nil {
		return nil, nil, errors.Join(err, r.fleet.Close())
	}
	started.add(r.dir.discard)
	started.add(r.fleet.Close)
	c.sweep(r.dir.Path)
	var source *promimport.Source
	switch {
	case o.Kubeconfig.Files != "":
		r.target, source, err = askForCluster(ctx, o, gates, ends, r.info.ID, c)
		if err == nil {
			started.add(r.target.unlock)
		}
	case o.Plane != "":
		r.target, err = sharedTarget(ctx, o, r.info.ID, c)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := r.begin(registry, started); err != nil {
		return nil, nil, err
	}
	if err := r.fleet.Invite(ctx, filepath.Join(r.dir.Path, workersDir), r.info.ID); err != nil {
		return nil, nil, err
	}
	if r.target == nil {
		if r.target, _, err = bundledTarget(ctx, o, r.dir.plane(), r.info.ID, c, started); err != nil {
			return nil, nil, err
		}
	}
	watched = r.target.watch(ctx)
	target := r.target // copied, because r is nil if a later step fails
	started.add(func() error { target.unwatch(); return nil })
	if err := r.connect(watched, registry, source, listener, client, started); err != nil {
		err = r.target.firstCause(ctx, err)
		if ctx.Err() == nil {
			c.step("failed: %v", err)
		}
		return nil, nil, err
	}
	return r, watched, nil
}

func describe(o Options) (info result.Run, err error) {
	info = result.Run{
		Scenario: o.Scenario.Name, Started: time.Now().UTC(), Seed: o.Scenario.Seed,
		Variant: o.Scenario.Variant, Warnings: o.Scenario.Warnings(),
		Overrides: o.Overrides, WithoutGates: o.WithoutGates, WithoutHooks: o.WithoutHooks, Host: hostFacts(),
		Versions: result.Versions{Stormglass: Version(), Go: runtime.Version()},
	}
	info.Cluster.Bundled = o.Kubeconfig.Files == ""
	if info.Cluster.Bundled {
		info.Warnings = slices.Concat(info.Warnings, o.Scenario.Unserved(), gate.Warnings(o.Scenario))
	}
	info.ID, err = rundir.NewID()
	return info, err
}

// begin writes the scenario and the description of the run to the run's directory, and opens the timeline.
func (r *run) begin(registry *prometheus.Registry, started *undo) (err error) {
	if r.info.Files, err = r.dir.writeScenario(r.o.Scenario); err != nil {
		return err
	}
	if r.timeline, err = timeline.Open(r.dir.Path); err != nil {
		return exitcode.EnvironmentError(err)
	}
	started.add(r.timeline.Close)
	if err := r.timeline.Register(registry); err != nil {
		return exitcode.EnvironmentError(err)
	}
	if err := rundir.WriteInfo(r.dir.Path, r.info); err != nil {
		return err
	}
	r.step("run directory %s, seed %d", r.dir.Path, r.info.Seed)
	return nil
}

// connect creates the stages that load and measure the target.
func (r *run) connect(ctx context.Context, registry *prometheus.Registry, source *promimport.Source, listener net.Listener, client *remotewrite.Client, started *undo) error {
	s, t := r.o.Scenario, r.target
	r.info.Versions.Kubernetes, r.info.Versions.Etcd = t.KubernetesVersion, t.EtcdVersion
	if err := r.describeCluster(); err != nil {
		return err
	}
	told, err := t.setup(ctx, r.console, r.dir.Path, started)
	if err == nil && r.o.Fuse.CleanupImage != "" {
		err = exitcode.EnvironmentError(t.MakeCleanupJob(ctx, r.o.Fuse.CleanupImage))
	}
	if err != nil {
		return err
	}
	if told != "" {
		r.info.Warnings = append(r.info.Warnings, told)
		if err := r.describeCluster(); err != nil {
			return err
		}
	}
	r.recording, err = openRecording(recordingOptions{
		console: r.console, dir: r.dir.Path, scenario: s, targets: t.Scrape, bundled: t.Cluster.Bundled,
		source: source, listener: listener, public: r.o.ObservePublic, registry: registry,
		receiver: client, name: rundir.Name(r.dir.Path, s.Variant), extra: gate.StopFamilies(slices.Concat(r.aborts.stops, r.aborts.usual)),
	})
	if err != nil {
		return err
	}
	started.add(r.recording.close)
	if r.samples, err = samples.Open(r.dir.Path, r.record); err != nil {
		return exitcode.EnvironmentError(err)
	}
	started.add(r.samples.Close)
	r.aborts.follow(r.samples)
	if r.self, err = generator.NewSelfMeter(registry); err != nil {
		return exitcode.EnvironmentError(err)
	}
	if err = registry.Register(ownRequests(t.Requests)); err != nil {
		return exitcode.EnvironmentError(err)
	}
	if r.counted, err = generator.CountInstructions(registry, t.Processes); err != nil {
		return exitcode.EnvironmentError(err)
	}
	started.add(r.counted.Close)
	if r.delays, err = generator.MeasureRunDelay(registry, append(slices.Clone(t.Processes), generator.Self())); err != nil {
		return exitcode.EnvironmentError(err)
	}
	r.workload, err = workload.New(t.Requests.Counted(t.Load), workload.Options{
		Namespace: t.Namespace, Labels: t.Labels, NodeSelector: t.NodeSelector(), Tolerations: cluster.Tolerations(), DeviceClass: t.DeviceClass(),
		Registerer: registry, Stalls: r.self.Stalls(), Namespaces: s.DeletesNamespaces(), Kinds: s.WorkloadKinds(), Patience: patience(s),
	})
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	if r.follow, err = newFollower(t.Target, s, r.self.Stalls()); err != nil {
		return err
	}
	divided := r.nodeWorkers()
	config := nodeConfig(ctx, t, s, r.console, divided != nil)
	config.Registerer, config.Samples, config.Use = registry, r.samples, r.workload.Use
	if r.nodes, err = newNodes(config, divided); err != nil {
		return err
	}
	if len(r.o.Measurements) > 0 { // Prepare of a measurement may create pods
		if err := t.AwaitServiceAccount(ctx); err != nil {
			return exitcode.EnvironmentError(err)
		}
	}
	if r.custom, err = newCustom(ctx, r.o, t.Target); err != nil {
		return err
	}
	to := load.Target{
		Config: t.Load, Namespace: t.Namespace, Labels: t.Labels, Seed: s.Seed, Registerer: registry,
		Samples: r.samples, Stalls: r.self.Stalls(), Callers: r.o.Loads,
		Namespaces: t.BatchNamespaces(), NodeSelector: t.PodPlacement(), Tolerations: cluster.Tolerations(), Pause: r.pause,
	}
	started.add(r.fleet.Close) // undone before the samples are closed, because workers still write to them
	if err := r.joinWorkers(ctx, to, registry); err != nil {
		return err
	}
	defer r.waiting("the objects that loads work on")()
	if r.loads, err = newLoads(ctx, s, to, r.dir.Path, r.o.Hurry, r.fleet); err != nil {
		return err
	}
	if r.objects, err = t.Objects(r.workload.Retry); err != nil {
		return exitcode.EnvironmentError(err)
	}
	r.self.Backlog(r.loads.backlog)
	r.stage()
	r.o.Control.attach(r.display.steering, r.recording.live())
	return nil
}

// ownRequests returns a metric that counts the requests of the run itself, without the requests of loads and
// simulated nodes.
func ownRequests(of *apiclient.Counter) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "stormglass_own_requests_total",
		Help: "Requests to API servers by the run itself, without watches: setup, actions, followed objects, clean-up. Loads and simulated nodes count their own requests.",
	}, func() float64 { return float64(of.Sent()) })
}

func (r *run) describeCluster() error {
	r.info.Cluster = r.target.Cluster
	r.info.Cluster.Deviations = slices.Concat(r.target.Cluster.Deviations, r.o.Scenario.CPUProfiled())
	return rundir.WriteInfo(r.dir.Path, r.info)
}

// workersDir is the directory for the workers' logs and, during the run, their credentials.
const workersDir = "workers"

// joinWorkers waits until the workers have joined, and gives them their shares of the loads and nodes.
func (r *run) joinWorkers(ctx context.Context, to load.Target, registry *prometheus.Registry) error {
	if r.fleet == nil {
		return nil
	}
	defer r.waiting("workers to join " + r.fleet.Where())()
	if err := r.fleet.Join(ctx, r.o.Scenario, to, r.info.ID); err != nil {
		return causeOf(ctx, err)
	}
	if whole := workers.Whole(r.o.Scenario); len(whole) > 0 {
		r.step("loads that cannot be divided run in the coordinator: %s", strings.Join(whole, ", "))
	}
	return exitcode.EnvironmentError(r.fleet.Register(registry))
}

// stage creates the display and the phases, which use the earlier stages.
func (r *run) stage() {
	if r.aborts == nil {
		r.aborts = &aborts{}
	}
	r.aborts.journal, r.aborts.halt, r.aborts.overdue = r.journal, r.loads.halt, r.loads.overdue
	r.display = newDisplay(r)
	r.display.steering = newSteering(r.journal, r.pause, r.fleet, r.display.changed)
	r.phases = &phases{
		journal: r.journal, scenario: r.o.Scenario, supervisor: r.target.supervisor, recorder: r.recording, self: r.self,
		workload: r.workload, follow: r.follow, nodes: r.nodes, loads: r.loads, custom: r.custom, display: r.display, objects: r.objects,
		create: r.target.Create, awaitServed: r.target.AwaitServed,
		outOfService: r.target.OutOfService, save: r.save,
		profiler: &profiler{journal: r.journal, dir: r.dir.Path, open: r.target.ProfileSources},
		aborts:   r.aborts,
		steering: r.display.steering,
		hooks:    &hooks{journal: r.journal, dir: r.dir.Path, namespace: r.target.Namespace, kubeconfig: r.target.WriteKubeconfig},
	}
}

// causeOf returns the cause of ctx if ctx has ended, for example by an interrupt. Otherwise it returns err.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// undo is a list of functions in the order of the steps that they undo.
type undo []func() error

func (u *undo) add(f func() error) { *u = append(*u, f) }

// undo calls the functions in reverse order. It returns their errors, except errors that cause already contains.
func (u undo) undo(cause error) error {
	var errs []error
	for _, f := range slices.Backward(u) {
		if err := f(); !errors.Is(cause, err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
