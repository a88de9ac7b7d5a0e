// Package loadgen generates load on a Kubernetes control plane and judges the
// effects. Run runs a scenario (package scenario) and writes a directory. Judge
// reads only that directory and returns a Result (package result):
//
//	s, err := scenario.Read("rollout-500", nil)
//	dir, err := loadgen.Run(ctx, loadgen.Options{Scenario: s, Progress: progress})
//	res, err := loadgen.Judge(ctx, dir)
//
// A run writes its measurements to the directory continuously, so a killed run can be
// judged too. Without Options.Kubeconfig and Options.Plane, the run starts a separate
// control plane with the binary controlplane.
//
// # Custom loads, actions and measurements
//
// A load of kind "custom" has its schedule, bounds and name from the scenario.
// The Load in Options.Loads with that name makes its requests:
//
//	phases:
//	  - {name: rush, for: 1m, load: [{kind: custom, name: login, rate: 50/s}]}
//	gates:
//	  - {name: logins, objective: request-latency, load: login, max: 200ms}
//
// Like all loads, it is an open loop, and its latencies count from the intended start.
// Counts and latencies are in result.Phase.Requests (verb "call"),
// in the charts, and in the metrics stormglass_requests_total and
// stormglass_request_seconds, so the objectives of requests apply to it.
//
// The Action in Options.Actions with the name of an action of kind "custom" performs it. A
// Measurement in Options.Measurements returns named figures of each phase. They are in
// result.Phase.Custom and in the report, and a gate judges one by the objective custom-figure:
//
//	phases:
//	  - {name: rotate, for: 1m, actions: [{kind: custom, name: rotate-keys}]}
//	gates:
//	  - {name: reconciled, objective: custom-figure, figure: reconcile/p99, max: 1s}
//
// Every scrape records the metrics of a Collector in Options.Collectors, as job
// "loadgen". A gate reads them by PromQL:
//
//	gates:
//	  - {name: sessions, expr: max(myapp_sessions), max: 1000}
//
// # In a Go test
//
// Package testplane runs scenarios in Go tests, on a control plane that it starts once.
//
// # Other functions
//
// RunVariants and Compare compare the variants of a scenario. JudgeBy judges a
// run by other gates or by Prometheus rules, ChartByName draws one chart, and Prove judges
// alerts. Nodes runs only simulated nodes, and Observe only an observer. Usage and
// ExitCode map errors to the exit codes of the commands.
//
// # Stability
//
// Code and files of an older version continue to work within v1alpha1, because these are stable: the
// fields of a scenario file and of result.json (fields are added, but never renamed or given
// another meaning), the directory of a run, exit codes, Run, RunVariants, Judge,
// JudgeBy, Options, Load, Action, Measurement and Progress. Everything else that this package exports serves the
// commands and may change with them. Packages under internal cannot be imported.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/compare"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/web"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// The exit codes of a judged run, and of a run that never began.
const (
	ExitPass        = exitcode.Pass
	ExitFail        = exitcode.Fail
	ExitNoData      = exitcode.NoData
	ExitEnvironment = exitcode.Environment
	ExitUsage       = exitcode.Usage
)

// Options are the options of a run. Scenario and Progress are required, and Confirm with
// Kubeconfig. Kubeconfig and Plane exclude each other.
type Options struct {
	Scenario *scenario.Scenario
	// Overrides are the path=value settings with which the scenario was read, and
	// WithoutGates the gates that were left out. Both are only recorded.
	Overrides, WithoutGates []string
	// WithoutHooks records that the hooks were left out. Scenario.DropHooks removes them from the scenario.
	WithoutHooks bool
	// Out is the run directory, which must be new or empty; "" means runs/TIME-NAME.
	Out string
	// Kubeconfig names a user's cluster. Without it and Plane, the run starts a control plane.
	Kubeconfig Kubeconfig
	// Targets is a file with additional scrape targets of a user's cluster.
	Targets string
	// ControlPlane is the path of the binary controlplane. Empty means next to this program, then
	// in PATH.
	ControlPlane string
	// Plane is the directory of a running control plane (`controlplane up --dir`). The run
	// leaves it running, and removes everything that it created there at its end.
	Plane string
	// Loads make the requests of the scenario's loads of kind "custom", by name.
	Loads map[string]Load
	// Actions perform the scenario's actions of kind "custom", by name.
	Actions map[string]Action
	// Measurements return figures of each phase, by name.
	Measurements map[string]Measurement
	// Collectors are recorded in addition to the generator's own metrics. The names of their metrics
	// must not begin with stormglass_, go_ or process_.
	Collectors []prometheus.Collector
	// Observe is the address, HOST:PORT, at which Prometheus' query API serves the run
	// while it is active. Empty means that it is not served. ObservePublic allows an address that
	// other machines can reach, without a password.
	Observe       string
	ObservePublic bool
	// Prometheus names a Prometheus that scrapes the user's cluster. The run copies its samples
	// instead of scraping. Nil means that the run scrapes.
	Prometheus *Prometheus
	// RemoteWrite names a receiver to which the run sends its samples while it is active. The
	// zero value means no receiver.
	RemoteWrite RemoteWrite
	// Workers divide the loads and nodes among several generators. The zero value means that this process does all.
	Workers Workers
	// Confirm is called before the run creates anything in a user's cluster.
	Confirm func(context.Context, Plan) (bool, error)
	// Progress shows the run.
	Progress Progress
	// Control pauses the load and ends phases while the run is active. Nil means no control.
	Control *Control
	// Hurry is closed when the user, after canceling the context, no longer waits for
	// an orderly end. The run then leaves the remaining objects and still writes the report.
	// Nil means that the user always waits.
	Hurry <-chan struct{}
	// Fuse ends the run early and limits what it sends. On a user's cluster it also guards the cluster. The zero value means
	// the default conditions and the lock on a user's cluster, and nothing on other planes.
	Fuse Fuse
}

// internal returns the options for package run.
func (o Options) internal() run.Options {
	callers := map[string]load.Caller{}
	for name, l := range o.Loads {
		callers[name] = l
	}
	actions := map[string]run.Action{}
	for name, a := range o.Actions {
		actions[name] = a
	}
	measurements := map[string]run.Measurement{}
	for name, m := range o.Measurements {
		measurements[name] = m
	}
	return run.Options{
		Scenario: o.Scenario, Overrides: o.Overrides, WithoutGates: o.WithoutGates, WithoutHooks: o.WithoutHooks, Out: o.Out,
		Kubeconfig: o.Kubeconfig, Targets: o.Targets, ControlPlane: o.ControlPlane,
		Plane: o.Plane, Loads: callers, Actions: actions, Measurements: measurements, Collectors: o.Collectors, Observe: o.Observe, ObservePublic: o.ObservePublic,
		Prometheus: o.Prometheus, RemoteWrite: o.RemoteWrite, Workers: o.Workers, Confirm: o.Confirm, Progress: o.Progress, Control: o.Control, Hurry: o.Hurry, Fuse: o.Fuse,
	}
}

// Load makes the requests of a load of kind "custom".
type Load interface {
	// Prepare creates what Do needs, before the first phase. cfg is the load's identity
	// on the target, and namespace the run's namespace. Every object created for the run must
	// have labels, so that it is removed. On a user's cluster the identity has only the
	// rights of the scenario's other loads.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Do makes one request and returns when it has the answer. It is called from as many goroutines as the load's maxInFlight.
	// ctx ends after the load's timeout. A nil error counts as status 200, an error of client-go as its HTTP status, and other
	// errors by kind, as in result.Requests.Outcomes.
	Do(ctx context.Context) error
}

// Action performs an action of kind "custom".
type Action interface {
	// Do performs the action and returns when it is done. The phase's next action waits for it.
	// The arguments are as in Load.Prepare. An error ends the run with exit code 4.
	Do(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
}

// Measurement returns figures of each phase.
type Measurement interface {
	// Prepare starts everything that lasts for the whole run, before the first phase. The arguments are
	// as in Load.Prepare. ctx ends after the last phase. An error ends the run with exit code 4.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Start begins a phase, before its loads and actions.
	Start(ctx context.Context, phase string) error
	// Stop ends the phase that Start began, after its loads, and returns its figures. It may
	// wait for pending work. If Start fails, Stop is not called. After an error of Start or
	// Stop, gates on the figures have no data.
	Stop(ctx context.Context) ([]Figure, error)
}

// Figure is a named value, 0 or more, in a unit of result.CustomFigure.
type Figure = result.CustomFigure

// Progress shows a run. Its methods are called from several goroutines.
type Progress interface {
	// Step reports in one line what was done or begun.
	Step(line string)
	// Live reports the state of the run, once a second.
	Live(Snapshot)
}

type (
	// Snapshot is the state of a run: its phase, rates, nodes, pods and watches.
	Snapshot = run.Snapshot
	// PhaseState is a phase in a Snapshot, StopState a condition that ends the run early.
	PhaseState = run.PhaseState
	StopState  = run.StopState
	// Control pauses the load of an active run, and ends its phases.
	Control = run.Control
	// Web serves the page of an active run to browsers on this machine.
	Web = web.Server
	// Plan lists what a run will create in a user's cluster. String formats it.
	Plan = cluster.Plan
	// Prometheus names a Prometheus whose samples a run copies instead of scraping.
	Prometheus = promimport.Config
)

// ErrPaused is the error of Control.Pause while the load is paused.
var ErrPaused = run.ErrPaused

// OpenWeb opens addr, HOST:PORT of this machine, for the page of a run. Web.Start begins to serve it.
func OpenWeb(addr string) (*Web, error) { return web.Open(addr) }

// Run runs a scenario and returns its directory. On an error there is nothing to
// judge. If the run is interrupted or its environment fails, Run returns no error
// and the directory says so.
func Run(ctx context.Context, o Options) (dir string, err error) { return run.Run(ctx, o.internal()) }

// RunVariants runs all variants of a scenario, one after another, each on a separate
// plane and in a directory with its name, and compares them. If a variant cannot run,
// the remaining variants still run. After an interrupt it compares the variants that
// have run. On an error there is nothing to compare.
func RunVariants(ctx context.Context, o Options) (c result.Comparison, dir string, err error) {
	return compare.Run(ctx, o.internal())
}

// Check returns the errors in the gates of a scenario and of its variants.
func Check(s *scenario.Scenario) error {
	return s.Check(func(s *scenario.Scenario) error {
		if _, err := gate.Compile(s); err != nil {
			return err
		}
		var errs []error
		for _, v := range s.AllVariants() {
			_, err := gate.Compile(v)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// Warnings returns one line for each probable mistake in a scenario and in its
// variants.
func Warnings(s *scenario.Scenario) []string {
	all := slices.Concat(s.Warnings(), s.Unserved(), gate.Warnings(s))
	for _, v := range s.AllVariants() {
		for _, w := range append(v.Warnings(), v.Unserved()...) {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	if len(s.Gates) == 0 {
		all = append(all, fmt.Sprintf("%s has no gates: a run of it judges nothing, and exits with 3", s.Name))
	}
	return all
}

// MissingReleases returns one line for each controlplane program of another version that a run of a scenario or of one of
// its variants would lack on this machine. controlplane is the program, as in Options. Without a controlplane program,
// MissingReleases returns nothing.
func MissingReleases(ctx context.Context, s *scenario.Scenario, controlplane string) []string {
	return run.MissingReleases(ctx, s, controlplane)
}

// CheckVariant returns an error if a variant sets fields of the control plane in a run on
// a user's cluster, where they have no effect.
func CheckVariant(s *scenario.Scenario, name string, kubeconfig Kubeconfig) error {
	return compare.CheckVariant(s, name, kubeconfig)
}

// CheckPrometheus returns an error if p is invalid. It does not connect.
func CheckPrometheus(p Prometheus) error {
	_, err := promimport.New(p)
	return err
}

// Usage marks an error as a usage error, with exit code ExitUsage.
func Usage(err error) error { return exitcode.UsageError(err) }

// ExitCode returns the exit code for an error.
func ExitCode(err error) int { return exitcode.Of(err) }

// Version returns the version of the build.
func Version() string { return run.Version() }
