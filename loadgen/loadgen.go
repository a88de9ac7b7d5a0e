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
// The scenario sets the name, schedule and bounds of a load of kind "custom". The Load in Options.Loads with the same
// name sends the requests:
//
//	phases:
//	  - {name: rush, for: 1m, load: [{kind: custom, name: login, rate: 50/s}]}
//	gates:
//	  - {name: logins, objective: request-latency, load: login, max: 200ms}
//
// Like all loads, a custom load is an open loop, and its latencies count from the intended start.
// Counts and latencies are in result.Phase.Requests (verb "call"),
// in the charts, and in the metrics stormglass_requests_total and
// stormglass_request_seconds. The objectives of requests therefore apply to custom loads.
//
// The Action in Options.Actions with the same name performs an action of kind "custom". A Measurement in
// Options.Measurements returns named figures of each phase. The figures are in result.Phase.Custom and in the report.
// The objective custom-figure of a gate judges a figure:
//
//	phases:
//	  - {name: rotate, for: 1m, actions: [{kind: custom, name: rotate-keys}]}
//	gates:
//	  - {name: reconciled, objective: custom-figure, figure: reconcile/p99, max: 1s}
//
// Every scrape records the metrics of the Collectors in Options.Collectors, with the job "loadgen". A gate reads them
// with PromQL:
//
//	gates:
//	  - {name: sessions, expr: max(myapp_sessions), max: 1000}
//
// # In a Go test
//
// Package testplane runs scenarios in Go tests, on a control plane that it starts once.
//
// # Stability
//
// docs/reference/support.md says which names and formats are stable. Package cli is the command loadgen.
package loadgen

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/compare"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options are the options of a run. Scenario and Progress are required. Confirm is required with Kubeconfig. Kubeconfig
// and Plane cannot be used together.
type Options struct {
	Scenario *scenario.Scenario
	// Overrides are the path=value settings that the caller applied to Scenario. WithoutGates are the names of the
	// gates that the caller removed from it. The run records both fields, but does not apply them.
	Overrides, WithoutGates []string
	// Labels are recorded in the run's files. They have no effect on the run.
	Labels map[string]string
	// WithoutHooks reports whether the caller removed the hooks from Scenario with Scenario.DropHooks. The run records
	// this field, but does not apply it.
	WithoutHooks bool
	// Out is the run directory, which must be new or empty; "" means runs/TIME-NAME.
	Out string
	// Kubeconfig names a user's cluster to run on. If neither Kubeconfig nor Plane is set, the run starts a control
	// plane.
	Kubeconfig Kubeconfig
	// Targets is a file with additional scrape targets of a user's cluster.
	Targets string
	// ControlPlane is the path of the controlplane binary. If empty, the run searches the directory of this program and
	// then PATH.
	ControlPlane string
	// Plane is the directory of a running control plane (`controlplane up --dir`). At its end, the run removes
	// everything that it created in the control plane, and leaves the control plane running.
	Plane string
	// Loads maps the name of each load of kind "custom" in the scenario to its implementation.
	Loads map[string]Load
	// Actions maps the name of each action of kind "custom" in the scenario to its implementation.
	Actions map[string]Action
	// Measurements maps names to measurements, which return custom figures (named values) of each phase.
	Measurements map[string]Measurement
	// Collectors provide additional metrics. The run records these metrics with the generator's own metrics. Metric
	// names must not begin with stormglass_, go_ or process_.
	Collectors []prometheus.Collector
	// Observe is the address (HOST:PORT) at which the active run serves its samples with Prometheus' query API. Empty
	// means no API. ObservePublic permits an address that other machines can reach; the API has no password.
	Observe       string
	ObservePublic bool
	// Prometheus names a Prometheus server that scrapes the user's cluster. The run copies samples from this server
	// instead of scraping. If nil, the run scrapes the cluster itself.
	Prometheus *Prometheus
	// RemoteWrite names a receiver to which the run sends its samples while it is active. The
	// zero value means no receiver.
	RemoteWrite RemoteWrite
	// Workers divide the loads and nodes among several generators. The zero value means that this process is the only
	// generator.
	Workers Workers
	// Confirm reports whether the run may create the objects of the Plan in a user's cluster. The run calls it before
	// it creates anything there.
	Confirm func(context.Context, Plan) (bool, error)
	// Progress receives the steps and the state of the run, to show them to the user.
	Progress Progress
	// Control pauses the load and ends phases while the run is active. Nil means no control.
	Control *Control
	// Hurry shortens the end of a run whose context was canceled. After the caller closes this channel, the run leaves
	// the remaining objects in place, but still writes the report. Nil means that the run always removes its objects.
	Hurry <-chan struct{}
	// Fuse has the conditions that end the run early, the limits on what the run sends, and the protections of a user's
	// cluster. With the zero value, a run on a user's cluster uses the default conditions, and a lock that prevents
	// concurrent runs. Other runs have no conditions or limits.
	Fuse Fuse
	// Spans say where a run on a user's cluster gets the spans for distributed traces, if the scenario traces requests.
	// With the zero value, the run gets no spans. Runs on other control planes always receive the spans of their
	// control plane.
	Spans SpanSources
}

// Load sends the requests of a load of kind "custom".
type Load = interface {
	// Prepare creates the objects that Do needs. The run calls it before the first phase. cfg authenticates as the
	// load's user. namespace is the run's namespace. Prepare must set labels on every object that it creates, so that
	// the run can remove the object. On a user's cluster, the load's user has only the rights that the scenario's other
	// loads need.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Do sends one request and returns when the response has arrived. Up to the load's maxInFlight goroutines call Do
	// at the same time. ctx ends after the load's timeout. A nil error counts as HTTP status 200, and a client-go error
	// as its HTTP status. The run counts other errors by kind, as in result.Requests.Outcomes.
	Do(ctx context.Context) error
}

// Action performs an action of kind "custom".
type Action = interface {
	// Do performs the action and returns when the action is complete. Then the phase's next action starts. The
	// arguments are the same as in Load.Prepare. An error ends the run with exit code 4.
	Do(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
}

// Measurement measures custom figures in each phase.
type Measurement = interface {
	// Prepare prepares the measurement. The run calls it before the first phase. Prepare may start background work,
	// which must end when ctx ends, after the last phase. The other arguments are the same as in Load.Prepare. An error
	// ends the run with exit code 4.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Start begins the measurement of a phase. The run calls it before it starts the phase's loads and actions.
	Start(ctx context.Context, phase string) error
	// Stop ends the measurement of the phase and returns its figures. The run calls it after the phase's loads have
	// ended, but not if Start failed. Stop may wait for pending work. If Start or Stop returns an error, gates on the
	// figures have no data.
	Stop(ctx context.Context) ([]Figure, error)
}

// Figure is a named value of 0 or more, with one of the units of result.CustomFigure.
type Figure = result.CustomFigure

// Progress shows a run. Run calls its methods from several goroutines.
type Progress = interface {
	// Step reports, in one line, that the run has finished or started a step.
	Step(line string)
	// Live reports the state of the run, once a second.
	Live(Snapshot)
}

type (
	// Snapshot is the state of a run: its phase, rates, nodes, pods and watches.
	Snapshot = run.Snapshot
	// Control pauses the load of an active run, and ends its phases.
	Control = run.Control
	// Kubeconfig names a user's cluster and the identity to use there.
	Kubeconfig = cluster.Kubeconfig
	// Plan lists the objects that a run will create in a user's cluster. Plan.String formats the list.
	Plan = cluster.Plan
	// Prometheus names a Prometheus server. A run copies samples from it instead of scraping.
	Prometheus = promimport.Config
	// RemoteWrite names a receiver of Prometheus' remote write protocol.
	RemoteWrite = remotewrite.Config
	// Workers configures the generators that share the loads and nodes of a run, and how the run starts them.
	Workers = workers.Options
	// Fuse has conditions that end a run early, in addition to the scenario's conditions, and limits on what the run
	// sends.
	Fuse = run.Fuse
	// SpanSources say where a run gets the spans of a user's cluster: from a receiver, a file or both.
	SpanSources = run.SpanSources
)

// Run runs a scenario and returns the run directory. If Run returns an error, there is nothing to judge. If the run is
// interrupted or its environment fails, the error is nil, and the directory contains the reason.
func Run(ctx context.Context, o Options) (dir string, err error) { return run.Run(ctx, run.Options(o)) }

// RunVariants runs all variants of a scenario, one after another, and compares them. Each variant runs on a separate
// control plane and in a directory with its name. If a variant cannot run, the remaining variants still run. After an
// interrupt, RunVariants compares the variants that have run. If it returns an error, there is nothing to compare.
func RunVariants(ctx context.Context, o Options) (c result.Comparison, dir string, err error) {
	return compare.Run(ctx, run.Options(o))
}

// Judge judges the run in dir by the gates of its scenario, and writes result.json, junit.xml and report.html. Gates
// that need a damaged file have no data, and the result reports the damage. Judge returns an error if it could not judge
// the run or could not write the files.
func Judge(ctx context.Context, dir string) (result.Result, error) { return judge.Judge(ctx, dir) }

// JudgeBy judges the run in dir by files of gates or of Prometheus rules, and writes nothing. If files include a file
// of gates, only the alerts that gates name affect the verdict. Otherwise, no alert of the rules may fire in any phase.
// JudgeBy ignores missing data of the gates and alerts in noDataAllowed, unless every gate lacks data.
// result.Gate.Allowed marks the gates whose missing data was ignored.
func JudgeBy(ctx context.Context, dir string, files []string, noDataAllowed ...string) (result.Result, error) {
	return judge.By(ctx, dir, files, noDataAllowed...)
}

// Check returns an error if a scenario or one of its variants has valid fields that cannot work together, or errors in
// its gates. Run performs the same checks.
func Check(s *scenario.Scenario) error { return gate.Check(s) }

// ExitCode returns the exit code with which the command loadgen ends after the error err.
func ExitCode(err error) int { return exitcode.Of(err) }
