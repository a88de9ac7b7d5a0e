package gate

import (
	"context"
	"errors"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Figures checks the rows of the scenario's comparison, as Compile does its
// gates: a figure is a gate that nothing passes or fails by.
func Figures(s *scenario.Scenario) ([]Compiled, error) {
	var all []Compiled
	var errs []error
	for _, f := range s.Compare {
		g := scenario.Gate{Name: f.Name, Objective: f.Objective, Expr: f.Expr, Load: f.Load, Signal: f.Signal, Over: f.Over}
		// The bound is there for its side only: which of several values is the worst.
		least := "max"
		if o := find(f.Objective); o != nil {
			least, _, _ = strings.Cut(o.Default, ":")
		}
		zero := &scenario.Bound{}
		if err := zero.UnmarshalText([]byte("0")); err != nil {
			return nil, err
		}
		if least == "min" {
			g.Min = zero
		} else {
			g.Max = zero
		}
		c, err := compile(s, g, "compare."+f.Name, book{})
		c.boundless = true
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if f.Unit != "" {
			c.objective.Unit = scenario.Unit(f.Unit)
		}
		all = append(all, c)
	}
	return all, errors.Join(errs...)
}

// Measure takes the figures of a run. One without data says why.
func Measure(ctx context.Context, figures []Compiled, rec *rundir.Recorded) ([]result.Figure, error) {
	all := []result.Figure{}
	phases := phasesOf(rec)
	outages, _ := timeline.Of(rec.Timeline).Outages()
	for _, c := range figures {
		c.outages = outages
		g, err := c.judge(ctx, phases, rec, nil)
		if err != nil {
			return all, err
		}
		f := result.Figure{Name: g.Name, Objective: g.Objective, Expr: g.Expr, Over: g.Over, Unit: g.Unit, Detail: g.Detail, Better: "lower"}
		if g.Op == ">=" {
			f.Better = "higher"
		}
		if g.Verdict != result.NoData {
			f.Value, f.AtLeast = g.Value, g.AtLeast
		}
		all = append(all, f)
	}
	return all, nil
}

func checkSignals(s *scenario.Scenario) error {
	var errs []error
	for _, signal := range s.Signals {
		if _, err := selectors(signal.Expr); err != nil {
			errs = append(errs, s.Errorf("signals."+signal.Name+".expr", hintOf(err, "it is PromQL; $window is two and a half scrape intervals"), "%v", err))
		}
	}
	return errors.Join(errs...)
}
