package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options of a run. Package loadgen documents them.
type Options struct {
	Scenario                *scenario.Scenario
	Overrides, WithoutGates []string
	Out                     string
	Kubeconfig              cluster.Kubeconfig
	Targets                 string
	ControlPlane            string
	Loads                   map[string]load.Caller
	Collectors              []prometheus.Collector
	Observe                 string
	ObservePublic           bool
	Prometheus              *promimport.Config
	Confirm                 func(context.Context, cluster.Plan) (bool, error)
	Progress                Progress
	Hurry                   <-chan struct{}
}

func (o Options) checkLoads() error {
	unused := maps.Clone(o.Loads)
	for _, l := range o.Scenario.Loads() {
		if l.Kind != "custom" {
			continue
		}
		if o.Loads[l.Name] == nil {
			return exitcode.UsageError(o.Scenario.Errorf(l.Path, "run it from a Go program that gives it in loadgen.Options.Loads",
				"load %s is custom, and no code was given for it", l.Name))
		}
		delete(unused, l.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		return exitcode.Usagef("Options.Loads: scenario %s has no custom load %q", o.Scenario.Name, name)
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
