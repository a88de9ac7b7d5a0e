// Package run runs a scenario against a control plane. A run creates its stages in this order and stops them in the
// reverse order:
//
//	directory    created and locked; credentials that killed runs left are removed
//	target       the run's own control plane, started and ready, or a user's cluster, after the user's confirmation
//	loss watch   ends the run when the target is lost
//	archiver     scrapes metrics or copies them from a Prometheus server, and serves them by a query API
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
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
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

// windUpLimit returns the duration ifLost if the target is lost, and otherwise windUpTimeout.
func windUpLimit(lost bool, ifLost time.Duration) time.Duration {
	if lost {
		return ifLost
	}
	return windUpTimeout
}

// run is a run whose stages have started.
type run struct {
	*site
	instruments
	drivers
	display *display
	phases  *phases
}

// site is where a run happens: its directory, its target and its workers.
type site struct {
	journal
	compiled
	info    result.Run
	dir     *Directory
	target  *target
	fleet   *workers.Fleet // the workers; nil if this process runs all loads and nodes
	tracing *tracing       // tracing of requests; nil if the run keeps no traces
}

// ports connect a run to other programs. They are opened before anything starts.
type ports struct {
	registry *prometheus.Registry // metrics of this process, including Options.Collectors
	receiver *remotewrite.Client  // client of the remote-write receiver; nil without a receiver
	listener net.Listener         // listener of the query API; nil if the run serves no query API
	source   *promimport.Source   // the user's Prometheus server; nil if the run scrapes by itself
	tracing  *tracing             // tracing of requests; nil if the run keeps no traces
}

// instruments are the stages that measure the target and this process.
type instruments struct {
	archiver *archiver
	samples  *samples.Recorder
	self     *generator.SelfMeter
	counted  *generator.Instructions
	delays   *generator.RunDelay
}

// drivers are the stages that load the target and track the effects.
type drivers struct {
	workload *workload.Workload
	objects  *objects.Objects
	follow   *follow.Follower // watches of objects; nil if the scenario has no conditions or transitions on objects
	nodes    *nodes
	loads    *loads
	custom   *custom
	pause    *load.Pause
}

// Run runs a scenario and returns the run's directory. It returns an error if the run cannot start or cannot write its
// results; such a run cannot be judged. If a started run is interrupted or its environment fails, the files in the
// directory say so.
func Run(ctx context.Context, o Options) (dir string, err error) {
	p, err := o.checked()
	if err == nil {
		err = o.checkReleases(ctx)
	}
	if err != nil {
		return "", err
	}
	c := console{o.Progress, o.Hurry}
	defer c.announceSignals(ctx, o.Kubeconfig.Files != "")()
	var started undo
	r, watched, err := start(ctx, p, c, &started)
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

// start creates and starts all stages before the phases. watched is a context that ends with ctx or when the target is
// lost. start adds to `started` the functions that undo its steps. If start fails, the caller calls these functions.
func start(ctx context.Context, p compiled, c console, started *undo) (r *run, watched context.Context, err error) {
	info, err := describe(p)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range info.Warnings {
		c.step("warning: %s", w)
	}
	to, err := openPorts(p.o, c, started)
	if err != nil {
		return nil, nil, err
	}
	s := &site{journal: journal{console: c}, compiled: p, info: info, tracing: to.tracing}
	if err := s.open(ctx, &to, started); err != nil {
		return nil, nil, err
	}
	watched = s.target.watch(ctx)
	started.add(func() error { s.target.unwatch(); return nil })
	if r, err = s.equip(watched, to, started); err != nil {
		err = s.target.firstCause(ctx, err)
		if ctx.Err() == nil {
			c.step("failed: %v", err)
		}
		return nil, nil, err
	}
	return r, watched, nil
}

// describe returns what is known about a run before it starts.
func describe(p compiled) (info result.Run, err error) {
	s := p.plan
	info = result.Run{
		Scenario: s.Name, Started: time.Now().UTC(), Seed: s.Seed, Variant: s.Variant, Warnings: s.Warnings(),
		Labels: p.o.Labels, Overrides: p.o.Overrides, WithoutGates: p.o.WithoutGates, WithoutHooks: p.o.WithoutHooks, Host: hostFacts(),
		Versions: result.Versions{Stormglass: Version(), Go: runtime.Version()}, AbortOn: p.aborts.texts(),
	}
	info.Cluster.Bundled = p.o.Kubeconfig.Files == ""
	if info.Cluster.Bundled {
		info.Warnings = slices.Concat(info.Warnings, s.Unserved(), gate.Warnings(s))
	}
	info.ID, err = rundir.NewID()
	return info, err
}

func openPorts(o Options, c console, started *undo) (to ports, err error) {
	if to.registry, err = o.registry(); err != nil {
		return to, err
	}
	if to.receiver, err = receiver(o.RemoteWrite); err != nil {
		return to, err
	}
	if to.tracing, err = startTracing(o, c, started); err != nil {
		return to, err
	}
	to.listener, err = listen(o)
	if to.listener != nil {
		started.add(func() error { _ = to.listener.Close(); return nil }) // the archiver may have closed it
	}
	return to, err
}

// open lets workers join, creates the run's directory and connects to the target. It starts the control plane if the
// run has its own. If the metrics come from a user's Prometheus server, open sets to.source.
func (s *site) open(ctx context.Context, to *ports, started *undo) (err error) {
	if s.fleet, err = workers.Open(s.o.Workers, Build, s.step); err != nil {
		return err
	}
	if s.dir, err = MakeDirectory(s.o.Out, s.plan.Name, s.info.Started); err != nil {
		return errors.Join(err, s.fleet.Close())
	}
	started.add(s.dir.discard)
	started.add(s.fleet.Close)
	s.sweep(s.dir.Path)
	switch {
	case s.o.Kubeconfig.Files != "":
		s.target, to.source, err = askForCluster(ctx, s.compiled, s.info.ID, s.console)
		if err == nil {
			started.add(s.target.unlock)
		}
	case s.o.Plane != "":
		s.target, err = sharedTarget(ctx, s.o, s.plan, s.info.ID, s.console)
	}
	if err != nil {
		return err
	}
	if err := s.writeFiles(to.registry, started); err != nil {
		return err
	}
	if err := s.fleet.Invite(ctx, filepath.Join(s.dir.Path, workersDir), s.info.ID); err != nil {
		return err
	}
	if s.target == nil {
		s.target, _, err = bundledTarget(ctx, s.o, s.plan, s.dir.plane(), s.info.ID, s.tracing, s.console, started)
	}
	return err
}

// writeFiles writes the scenario and the description of the run to the run's directory, and opens the timeline.
func (s *site) writeFiles(registry *prometheus.Registry, started *undo) (err error) {
	if s.info.Files, err = s.dir.writeScenario(s.o.Scenario); err != nil {
		return err
	}
	if s.timeline, err = timeline.Open(s.dir.Path); err != nil {
		return exitcode.EnvironmentError(err)
	}
	started.add(s.timeline.Close)
	if err := s.timeline.Register(registry); err != nil {
		return exitcode.EnvironmentError(err)
	}
	if err := rundir.WriteInfo(s.dir.Path, s.info); err != nil {
		return err
	}
	s.step("run directory %s, seed %d", s.dir.Path, s.info.Seed)
	return nil
}

// equip prepares the target and creates the stages that load and measure it.
func (s *site) equip(ctx context.Context, to ports, started *undo) (*run, error) {
	if err := s.setUpTarget(ctx, started); err != nil {
		return nil, err
	}
	in, err := s.openInstruments(to, started)
	if err != nil {
		return nil, err
	}
	d, err := s.openDrivers(ctx, to.registry, in, started)
	if err != nil {
		return nil, err
	}
	r := newRun(s, in, d)
	s.o.Control.attach(r.display.steering, r.archiver.live())
	return r, nil
}

// setUpTarget records the target's versions and creates the objects that every run needs there.
func (s *site) setUpTarget(ctx context.Context, started *undo) error {
	s.info.Versions.Kubernetes, s.info.Versions.Etcd = s.target.KubernetesVersion, s.target.EtcdVersion
	if err := s.describeCluster(); err != nil {
		return err
	}
	told, err := s.target.setup(ctx, s.console, s.dir.Path, started)
	if err == nil && s.o.Fuse.CleanupImage != "" {
		err = exitcode.EnvironmentError(s.target.MakeCleanupJob(ctx, s.o.Fuse.CleanupImage))
	}
	if err != nil || told == "" {
		return err
	}
	s.info.Warnings = append(s.info.Warnings, told)
	return s.describeCluster()
}

func (s *site) openInstruments(to ports, started *undo) (in instruments, err error) {
	in.archiver, err = openArchiver(archiverOptions{
		console: s.console, dir: s.dir.Path, plan: s.plan, targets: s.target.Scrape, bundled: s.target.Cluster.Bundled,
		source: to.source, listener: to.listener, public: s.o.ObservePublic, registry: to.registry,
		receiver: to.receiver, name: rundir.Name(s.dir.Path, s.plan.Variant),
		extra: append(gate.StopFamilies(slices.Concat(s.aborts.stops, s.aborts.usual)), s.aborts.keep...),
	})
	if err != nil {
		return in, err
	}
	started.add(in.archiver.close)
	if in.samples, err = samples.Open(s.dir.Path, s.record); err != nil {
		return in, exitcode.EnvironmentError(err)
	}
	started.add(in.samples.Close)
	s.aborts.follow(in.samples)
	if in.self, err = generator.NewSelfMeter(to.registry); err != nil {
		return in, exitcode.EnvironmentError(err)
	}
	if err = to.registry.Register(ownRequests(s.target.Requests)); err != nil {
		return in, exitcode.EnvironmentError(err)
	}
	if in.counted, err = generator.CountInstructions(to.registry, s.target.Processes); err != nil {
		return in, exitcode.EnvironmentError(err)
	}
	started.add(in.counted.Close)
	in.delays, err = generator.MeasureRunDelay(to.registry, append(slices.Clone(s.target.Processes), generator.Self()))
	return in, exitcode.EnvironmentError(err)
}

// openDrivers creates the drivers, waits for the workers to join, and waits for the objects that loads work on.
func (s *site) openDrivers(ctx context.Context, registry *prometheus.Registry, in instruments, started *undo) (d drivers, err error) {
	p, t := s.plan, s.target
	d.pause = load.NewPause()
	d.workload, err = workload.New(t.Requests.Counted(t.Load), workload.Options{
		Namespace: t.Namespace, Labels: t.Labels, NodeSelector: t.NodeSelector(), Tolerations: cluster.Tolerations(), DaemonTolerations: cluster.PoolTolerations(p.Nodes), DeviceClass: t.DeviceClass(),
		Registerer: registry, Stalls: in.self.Stalls(), Namespaces: deletesNamespaces(p), Kinds: p.Workloads, Patience: patience(p),
	})
	if err != nil {
		return d, exitcode.EnvironmentError(err)
	}
	if d.follow, err = newFollower(t.Target, p, in.self.Stalls()); err != nil {
		return d, err
	}
	divided := s.nodeWorkers()
	config := nodeConfig(ctx, t, p, s.console, divided != nil)
	config.Registerer, config.Samples, config.Use = registry, in.samples, d.workload.Use
	if d.nodes, err = newNodes(config, divided); err != nil {
		return d, err
	}
	if len(s.o.Measurements) > 0 { // Prepare of a measurement may create pods
		if err := t.AwaitServiceAccount(ctx); err != nil {
			return d, exitcode.EnvironmentError(err)
		}
	}
	if d.custom, err = newCustom(ctx, s.o, t.Target); err != nil {
		return d, err
	}
	to := load.Target{
		Config: t.Load, Namespace: t.Namespace, Labels: t.Labels, Seed: p.Seed, Registerer: registry,
		Samples: in.samples, Stalls: in.self.Stalls(), Callers: s.o.Loads, Tracer: s.tracing.sampler(),
		Namespaces: t.BatchNamespaces(), NodeSelector: t.PodPlacement(), Tolerations: cluster.Tolerations(), Pause: d.pause,
	}
	started.add(s.fleet.Close) // undone before the samples are closed, because workers still write to them
	if err := s.joinWorkers(ctx, to, registry); err != nil {
		return d, err
	}
	defer s.waiting("the objects that loads work on")()
	if d.loads, err = newLoads(ctx, p, to, s.dir.Path, s.o.Hurry, s.fleet); err != nil {
		return d, err
	}
	in.self.Backlog(d.loads.backlog)
	d.objects, err = t.Objects(d.workload.Retry)
	return d, exitcode.EnvironmentError(err)
}

// deletesNamespaces reports whether a load deletes namespaces.
func deletesNamespaces(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Loads, func(l plan.Load) bool {
		return slices.ContainsFunc(l.Operations(), func(o scenario.Operation) bool { return o.Verb == "delete" && o.Resource == "namespaces" })
	})
}

// ownRequests returns a metric that counts the requests of the run itself, without the requests of loads and
// simulated nodes.
func ownRequests(of *apiclient.Counter) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "stormglass_own_requests_total",
		Help: "Requests to API servers by the run itself, without watches: setup, actions, followed objects, clean-up. Loads and simulated nodes count their own requests.",
	}, func() float64 { return float64(of.Sent()) })
}

func (s *site) describeCluster() error {
	s.info.Cluster = s.target.Cluster
	s.info.Cluster.Deviations = slices.Concat(s.target.Cluster.Deviations, cpuProfiled(s.plan))
	return rundir.WriteInfo(s.dir.Path, s.info)
}

// workersDir is the directory for the workers' logs and, during the run, their credentials.
const workersDir = "workers"

// joinWorkers waits until the workers have joined, and gives them their shares of the loads and nodes.
func (s *site) joinWorkers(ctx context.Context, to load.Target, registry *prometheus.Registry) error {
	if s.fleet == nil {
		return nil
	}
	defer s.waiting("workers to join " + s.fleet.Where())()
	if err := s.fleet.Join(ctx, s.plan, to, s.info.ID); err != nil {
		return causeOf(ctx, err)
	}
	if whole := workers.Whole(s.plan); len(whole) > 0 {
		s.step("loads that cannot be divided among workers run in the coordinator: %s", strings.Join(whole, ", "))
	}
	return exitcode.EnvironmentError(s.fleet.Register(registry))
}

// newRun creates the display and the phases, which use all other stages.
func newRun(s *site, in instruments, d drivers) *run {
	r := &run{site: s, instruments: in, drivers: d}
	r.aborts.journal, r.aborts.halt, r.aborts.overdue = r.journal, r.loads.halt, r.loads.overdue
	r.display = newDisplay(r)
	r.display.steering = newSteering(r.journal, r.pause, r.fleet, r.display.changed)
	r.phases = &phases{
		journal: r.journal, plan: r.plan, tracer: r.tracing.sampler(), supervisor: r.target.supervisor, recorder: r.archiver, self: r.self,
		workload: r.workload, follow: r.follow, nodes: r.nodes, loads: r.loads, custom: r.custom, display: r.display, objects: r.objects,
		create: r.target.Create, awaitServed: r.target.AwaitServed,
		outOfService: r.target.OutOfService, save: r.save,
		profiler: &profiler{journal: r.journal, dir: r.dir.Path, open: r.target.ProfileSources},
		aborts:   r.aborts,
		steering: r.display.steering,
		hooks:    &hooks{journal: r.journal, dir: r.dir.Path, namespace: r.target.Namespace, kubeconfig: r.target.WriteKubeconfig},
	}
	return r
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

// undo calls the functions in reverse order. It returns their errors, except errors that `cause` already contains.
func (u undo) undo(cause error) error {
	var errs []error
	for _, f := range slices.Backward(u) {
		if err := f(); !errors.Is(cause, err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
