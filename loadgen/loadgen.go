// Package loadgen drives load at a Kubernetes control plane and judges what
// happened. Run runs a scenario (package scenario) and leaves a directory; Judge
// reads that directory, and nothing else, and gives a Result (package result):
//
//	s, err := scenario.Read("rollout-500", nil)
//	dir, err := loadgen.Run(ctx, loadgen.Options{Scenario: s, Progress: progress})
//	res, err := loadgen.Judge(ctx, dir)
//
// Everything that a run measures is in its directory as it goes on, so a run that was
// killed can be judged too. Without Options.Kubeconfig the run starts a control plane
// of its own with the binary controlplane.
//
// # Loads, actions and measurements of one's own
//
// A load of kind "custom" has the schedule, the bounds and the name that the scenario
// gives it, and the requests of a Load in Options.Loads under that name:
//
//	phases:
//	  - {name: rush, for: 1m, load: [{kind: custom, name: login, rate: 50/s}]}
//	gates:
//	  - {name: logins, objective: request-latency, load: login, max: 200ms}
//
// Its arrivals are an open loop and its latencies count from the intended start, as
// those of all loads. Counts and latencies are in result.Phase.Requests (verb "call"),
// in the charts, and in the metrics stormglass_requests_total and
// stormglass_request_seconds, so the objectives of requests apply to it.
//
// An action of kind "custom" is done by the Action in Options.Actions under its name. A
// Measurement in Options.Measurements gives named figures of each phase; they are in
// result.Phase.Custom and in the report, and a gate judges one by objective custom-figure:
//
//	phases:
//	  - {name: rotate, for: 1m, actions: [{kind: custom, name: rotate-keys}]}
//	gates:
//	  - {name: reconciled, objective: custom-figure, figure: reconcile/p99, max: 1s}
//
// A metric of a Collector in Options.Collectors is recorded with every scrape, as job
// "loadgen". A gate reads it by PromQL:
//
//	gates:
//	  - {name: sessions, expr: max(myapp_sessions), max: 1000}
//
// # In a Go test
//
// Package testplane runs scenarios in Go tests, on a control plane that is started once.
//
// # Other functions
//
// RunVariants and Compare set the variants of a scenario side by side. JudgeBy judges a
// run by other gates or by Prometheus' rules, ChartByName draws one chart, Prove judges
// alerts. Nodes and Observe run simulated nodes and an observer alone. Usage and
// ExitCode map errors to the exit codes of the commands.
//
// # Stability
//
// Stable within v1alpha1, so that code and files of an older version go on to work: the
// fields of a scenario file and of result.json (they are added, never renamed or given
// another meaning), the directory of a run, exit codes, Run, RunVariants, Judge,
// JudgeBy, Options, Load, Action, Measurement and Progress. All else that this package exports serves the
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

// Exit codes of a judged run, and of one that never began.
const (
	ExitPass        = exitcode.Pass
	ExitFail        = exitcode.Fail
	ExitNoData      = exitcode.NoData
	ExitEnvironment = exitcode.Environment
	ExitUsage       = exitcode.Usage
)

// Options of a run. Scenario and Progress are needed, and Confirm with Kubeconfig. Kubeconfig
// and Plane exclude each other.
type Options struct {
	Scenario *scenario.Scenario
	// Overrides are the path=value settings that the scenario was read with, and
	// WithoutGates the gates that were left out of it, for the record.
	Overrides, WithoutGates []string
	// WithoutHooks: its hooks were left out, for the record (Scenario.DropHooks does it).
	WithoutHooks bool
	// Out is the run directory, new or empty; empty means runs/TIME-NAME.
	Out string
	// Kubeconfig names a user's cluster. Without it and Plane a control plane is started for
	// the run.
	Kubeconfig Kubeconfig
	// Targets is a file of further scrape targets of a user's cluster.
	Targets string
	// ControlPlane is the binary controlplane; empty means beside this program, then
	// PATH.
	ControlPlane string
	// Plane is the directory of a running control plane of Stormglass (`controlplane up --dir`),
	// which the run leaves running; empty means none. Everything that the run makes there is
	// removed at its end.
	Plane string
	// Loads make the requests of the scenario's loads of kind "custom", by name.
	Loads map[string]Load
	// Actions do the scenario's actions of kind "custom", by name.
	Actions map[string]Action
	// Measurements give figures of each phase, by name.
	Measurements map[string]Measurement
	// Collectors are recorded beside the generator's own metrics. Their names must not
	// begin with stormglass_, go_ or process_.
	Collectors []prometheus.Collector
	// Observe is the address, HOST:PORT, at which the run is served by Prometheus'
	// query API while it goes on; empty means nowhere. ObservePublic allows one that
	// other machines reach, without a password.
	Observe       string
	ObservePublic bool
	// Prometheus scrapes the user's cluster already: its samples are copied, and
	// nothing is scraped. Nil means there is none.
	Prometheus *Prometheus
	// RemoteWrite names a receiver that the run's samples are sent to while it goes on. The
	// zero value: none.
	RemoteWrite RemoteWrite
	// Workers divide the loads and nodes among several generators. The zero value: this process does all.
	Workers Workers
	// Confirm is asked before anything is made in a user's cluster.
	Confirm func(context.Context, Plan) (bool, error)
	// Progress shows the run.
	Progress Progress
	// Control commands the run while it goes on: pauses of load, ends of phases. Nil: nothing does.
	Control *Control
	// Hurry is closed when the user, who has ended the context, no longer waits for
	// the end in order: what is still to be removed stays, the report is written.
	// Nil: they always wait.
	Hurry <-chan struct{}
	// Fuse ends the run early and bounds what it sends; on a user's cluster it also guards the cluster. The zero value: the
	// usual conditions and the lock on a user's cluster, else nothing.
	Fuse Fuse
}

// internal are the options for package run.
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
	// Prepare makes what Do needs, before the first phase. cfg is the identity of load
	// on the target, namespace the run's own, labels those that everything made for
	// the run carries, so that it is removed. On a user's cluster the identity has the
	// rights of the scenario's other loads only.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Do makes one request and returns when its answer has come. It is called from as
	// many goroutines as the load's maxInFlight. ctx ends after the load's timeout. No
	// error counts as status 200, an error of client-go as its HTTP status, others by
	// kind, as in result.Requests.Outcomes.
	Do(ctx context.Context) error
}

// Action does an action of kind "custom".
type Action interface {
	// Do does the action and returns when it is done: the phase's next action waits for it.
	// Its arguments are those of Load.Prepare. An error ends the run with exit code 4.
	Do(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
}

// Measurement gives figures of each phase.
type Measurement interface {
	// Prepare begins what lasts for the whole run, before the first phase. Its arguments are
	// those of Load.Prepare. ctx ends after the last phase. An error ends the run with exit code 4.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Start begins a phase, before its loads and actions.
	Start(ctx context.Context, phase string) error
	// Stop ends the phase that Start began, after its loads, and returns its figures. It may
	// wait for what is still under way. After an error of Start, which Stop does not follow,
	// or of Stop gates on its figures have no data.
	Stop(ctx context.Context) ([]Figure, error)
}

// Figure is a named value, 0 or more, in a unit of result.CustomFigure.
type Figure = result.CustomFigure

// Progress shows a run. Its methods are called from several goroutines.
type Progress interface {
	// Step is one line about something done or begun.
	Step(line string)
	// Live is the state of the run, once a second.
	Live(Snapshot)
}

type (
	// Snapshot is the state of a run: its phase, rates, nodes, pods and watches.
	Snapshot = run.Snapshot
	// PhaseState is a phase in a Snapshot, StopState a condition that ends the run early.
	PhaseState = run.PhaseState
	StopState  = run.StopState
	// Control pauses the load of a run that goes on, and ends its phases.
	Control = run.Control
	// Web is the page of a run that goes on, for a browser of this machine.
	Web = web.Server
	// Plan lists what a run will make in a user's cluster. String formats it.
	Plan = cluster.Plan
	// Prometheus names a Prometheus whose samples are copied in place of scrapes.
	Prometheus = promimport.Config
)

// ErrPaused is the error of Control.Pause while load is paused.
var ErrPaused = run.ErrPaused

// OpenWeb takes HOST:PORT, an address of this machine, for the page of a run. Nothing is served before Web.Start.
func OpenWeb(addr string) (*Web, error) { return web.Open(addr) }

// Run runs a scenario and returns its directory. An error means that there is
// nothing to judge; a run that was interrupted, or whose environment failed
// under it, has a directory that says so.
func Run(ctx context.Context, o Options) (dir string, err error) { return run.Run(ctx, o.internal()) }

// RunVariants runs all variants of a scenario, one after another, each on a plane
// of its own and in a directory of its name, and compares them. A variant that
// cannot run does not stop the others; an interrupt does, and those that have run
// are compared. An error means that there is nothing to compare.
func RunVariants(ctx context.Context, o Options) (c result.Comparison, dir string, err error) {
	return compare.Run(ctx, o.internal())
}

// Check reports what is wrong with the gates of a scenario and of its variants.
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

// Warnings says in a line each what is probably not meant in a scenario and in its
// variants.
func Warnings(s *scenario.Scenario) []string {
	all := append(s.Warnings(), gate.Warnings(s)...)
	for _, v := range s.AllVariants() {
		for _, w := range v.Warnings() {
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

// MissingReleases says in a line each which controlplane programs of other versions a run of a scenario or of one of its
// variants would lack on this machine. controlplane is the program as in Options; where there is none nothing is said.
func MissingReleases(ctx context.Context, s *scenario.Scenario, controlplane string) []string {
	return run.MissingReleases(ctx, s, controlplane)
}

// CheckVariant refuses a variant that sets fields of the control plane in a run on a
// user's cluster, where they are not applied.
func CheckVariant(s *scenario.Scenario, name string, kubeconfig Kubeconfig) error {
	return compare.CheckVariant(s, name, kubeconfig)
}

// CheckPrometheus reports what is wrong with p, without connecting.
func CheckPrometheus(p Prometheus) error {
	_, err := promimport.New(p)
	return err
}

// Usage marks an error as the user's to mend: ExitUsage.
func Usage(err error) error { return exitcode.UsageError(err) }

// ExitCode returns the exit code for an error.
func ExitCode(err error) int { return exitcode.Of(err) }

// Version returns the version of the build.
func Version() string { return run.Version() }
