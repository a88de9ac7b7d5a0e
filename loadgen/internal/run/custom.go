package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Action is the code of an action of kind "custom". Package loadgen documents it.
type Action = interface {
	Do(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
}

// Measurement measures custom figures, which are named values, in each phase. Package loadgen documents it.
type Measurement = interface {
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	Start(ctx context.Context, phase string) error
	Stop(ctx context.Context) ([]result.CustomFigure, error)
}

// checkCustom returns an error for each action and measurement that the scenario names but the Go program does not
// provide, and for each action that the program provides but the scenario does not name.
func (o Options) checkCustom() error {
	s := o.Scenario
	var errs []error
	unused, checked := maps.Clone(o.Actions), map[string]bool{}
	for i, p := range s.Phases {
		for j, a := range p.Actions {
			if a.Kind != "custom" || checked[a.Name] {
				continue
			}
			if checked[a.Name] = true; o.Actions[a.Name] == nil {
				errs = append(errs, exitcode.UsageError(s.Errorf(fmt.Sprintf("phases[%d].actions[%d]", i, j), "run the scenario from a Go program that sets this action in loadgen.Options.Actions",
					"action %s has kind: custom, which only a Go program can run", a.Name)))
			}
			delete(unused, a.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		errs = append(errs, exitcode.Usagef("Options.Actions: scenario %s has no custom action %q", s.Name, name))
	}
	clear(checked)
	measured := func(path, figure string) {
		name, _, _ := strings.Cut(figure, "/")
		if name != "" && !checked[name] && o.Measurements[name] == nil {
			errs = append(errs, exitcode.UsageError(s.Errorf(path, "run the scenario from a Go program that sets this measurement in loadgen.Options.Measurements",
				"measurement %s has kind: custom, which only a Go program can take", name)))
		}
		checked[name] = true
	}
	for _, g := range s.Gates {
		if len(g.Variants) == 0 { // otherwise the gate belongs to other variants
			measured("gates."+g.Name+".figure", g.Figure)
		}
	}
	for _, f := range s.Compare {
		measured("compare."+f.Name+".figure", f.Figure)
	}
	return errors.Join(errs...)
}

// custom runs the actions and measurements that a Go program provides in Options. A nil custom has no measurements.
type custom struct {
	actions      map[string]Action
	measurements map[string]Measurement
	target       *cluster.Target
	begun        map[string]error // error that Start returned in the current phase, by measurement; nil if Start succeeded
}

func newCustom(ctx context.Context, o Options, t *cluster.Target) (*custom, error) {
	c := &custom{actions: o.Actions, measurements: o.Measurements, target: t}
	for _, name := range slices.Sorted(maps.Keys(c.measurements)) {
		if err := c.measurements[name].Prepare(ctx, rest.CopyConfig(t.Load), t.Namespace, maps.Clone(t.Labels)); err != nil {
			return nil, exitcode.Environmentf("prepare measurement %s: %w", name, causeOf(ctx, err))
		}
	}
	return c, nil
}

func (c *custom) do(ctx context.Context, name string) error {
	if err := c.actions[name].Do(ctx, rest.CopyConfig(c.target.Load), c.target.Namespace, maps.Clone(c.target.Labels)); err != nil {
		return fmt.Errorf("action %s: %w", name, err)
	}
	return nil
}

func (c *custom) beginPhase(ctx context.Context, phase string) {
	if c == nil {
		return
	}
	c.begun = map[string]error{}
	for name, m := range c.measurements {
		c.begun[name] = m.Start(ctx, phase)
	}
}

// endPhase stops the measurements and returns their figures, sorted by the measurement's name.
func (c *custom) endPhase(ctx context.Context) []result.Custom {
	if c == nil {
		return nil
	}
	var all []result.Custom
	for _, name := range slices.Sorted(maps.Keys(c.begun)) {
		made := result.Custom{Measurement: name}
		err := c.begun[name]
		if err == nil {
			made.Figures, err = c.measurements[name].Stop(ctx)
		}
		if err == nil {
			err = checkFigures(made.Figures)
		}
		if err != nil {
			made.Figures, made.Error = nil, err.Error()
		}
		all = append(all, made)
	}
	return all
}

// largestFigure is the largest value of a figure that result.Measurements.Check accepts.
const largestFigure = 1e15

// checkFigures returns an error if a figure cannot be judged, because its name is not unique, its unit is unknown, or its
// value is out of range.
func checkFigures(all []result.CustomFigure) error {
	units := []scenario.Unit{scenario.Number, scenario.Seconds, scenario.Ratio, scenario.Size, scenario.Count, scenario.PerHour, scenario.PerSec}
	named := map[string]bool{}
	for _, f := range all {
		switch {
		case f.Name == "" || named[f.Name]:
			return fmt.Errorf("figure %q: the name is empty or already used", f.Name)
		case !slices.Contains(units, scenario.Unit(f.Unit)):
			return fmt.Errorf("figure %s has the unknown unit %q (one of %q)", f.Name, f.Unit, units)
		case !(f.Value >= 0 && f.Value <= largestFigure):
			return fmt.Errorf("figure %s is %v, but must be from 0 to %g", f.Name, f.Value, largestFigure)
		}
		named[f.Name] = true
	}
	return nil
}
