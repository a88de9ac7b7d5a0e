package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options are the options of a run. Package loadgen documents them, and converts its Options, which have the same
// fields. Action, Measurement, Progress and load.Caller are aliases because the types of the fields must be identical.
type Options struct {
	Scenario                *scenario.Scenario
	Overrides, WithoutGates []string
	Labels                  map[string]string
	WithoutHooks            bool
	Out                     string
	Kubeconfig              cluster.Kubeconfig
	Targets                 string
	ControlPlane            string
	Plane                   string
	Loads                   map[string]load.Caller
	Actions                 map[string]Action
	Measurements            map[string]Measurement
	Collectors              []prometheus.Collector
	Observe                 string
	ObservePublic           bool
	Prometheus              *promimport.Config
	RemoteWrite             remotewrite.Config
	Workers                 workers.Options
	Confirm                 func(context.Context, cluster.Plan) (bool, error)
	Progress                Progress
	Control                 *Control
	Hurry                   <-chan struct{}
	Fuse                    Fuse
	Spans                   SpanSources
}

func (o Options) checkLoads(p *plan.Plan) error {
	unused := maps.Clone(o.Loads)
	for _, l := range p.Loads {
		if l.Kind != "custom" {
			continue
		}
		if o.Loads[l.Name] == nil {
			return exitcode.UsageError(p.Errorf(l.Path, "run the scenario from a Go program that sets this load in loadgen.Options.Loads",
				"load %s has kind: custom, which only a Go program can send", l.Name))
		}
		delete(unused, l.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		return exitcode.Usagef("Options.Loads: scenario %s has no custom load %q", o.Scenario.Name, name)
	}
	return nil
}

func (o Options) checkLabels() error {
	if err := result.CheckLabels(o.Labels); err != nil {
		return exitcode.Usagef("--label: %w", err)
	}
	return nil
}

func (o Options) registry() (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	for _, c := range o.Collectors {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("Options.Collectors: %w", err)
		}
	}
	return r, nil
}

// leftError is an error that names the objects left in a user's cluster, and how to remove them.
type leftError string

func (e leftError) Error() string { return string(e) }

// Left returns the part of an error that names the objects left in a user's cluster and how to remove them, or "".
func Left(err error) string {
	var left leftError
	errors.As(err, &left)
	return string(left)
}

// interruptedError is the error of a run that was interrupted before it recorded anything to report. `left` contains
// the errors that occurred when the run removed what it had created; nil means that nothing is left. The exit code is
// 3, or 4 if left is not nil.
type interruptedError struct{ left error }

func (e interruptedError) Error() string {
	if e.left != nil {
		return fmt.Sprintf("interrupted before there were any results, and the clean-up failed: %v", e.left)
	}
	return "interrupted before there were any results; nothing is left behind"
}

func (e interruptedError) Unwrap() error { return e.left }

// Unjudged reports whether the error counts as "no data": the run recorded nothing and left nothing behind.
func (e interruptedError) Unjudged() bool { return e.left == nil }

// Interrupted returns the error of a run that was interrupted before it recorded anything to report. `left` contains
// the errors that occurred when the run removed what it had created, or is nil.
func Interrupted(left error) error { return interruptedError{left} }
