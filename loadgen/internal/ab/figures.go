package ab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
)

// noFigures is the hint in the error for a scenario without metrics to compare.
const noFigures = "write compare: [{name: ..., objective: ...}], or use the scenario ci-gate"

// figuresOf returns the metrics that the scenario compares. The gated metrics, which decide the answer, come first.
// figuresOf fails if no metric is gated, unless advice is true: then all metrics may be advisory.
func figuresOf(o Options, advice bool) ([]result.ABFigure, error) {
	if _, err := gate.Figures(plan.Of(o.A.Scenario)); err != nil {
		return nil, exitcode.UsageError(err)
	}
	var all []result.ABFigure
	for _, f := range o.A.Scenario.Compare {
		one := result.ABFigure{Name: f.Name, Changes: []float64{}}
		if f.Spread != nil {
			one.Calibrated = new(f.Spread.Value)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, exitcode.UsageError(o.A.Scenario.Errorf("compare", noFigures, "scenario %s has no metrics to compare", o.A.Scenario.Name))
	}
	if len(o.Gated) > 0 {
		return choose(all, o.Gated)
	}
	var byspread []*result.ABFigure
	for i := range all {
		f := &all[i]
		switch {
		case f.Calibrated == nil:
			f.Advice = "it is not known how much this metric varies between identical runs"
		case *f.Calibrated > o.Plan.Spread:
			f.Advice = fmt.Sprintf("it varies by %.1f%% between identical runs, which is more than --spread %.1f%%", 100**f.Calibrated, 100*o.Plan.Spread)
		default:
			byspread = append(byspread, f)
		}
	}
	slices.SortStableFunc(byspread, func(a, b *result.ABFigure) int { return cmp.Compare(*a.Calibrated, *b.Calibrated) })
	for i, f := range byspread {
		if f.Gated = i < o.Plan.Figures; !f.Gated {
			f.Advice = fmt.Sprintf("%d other metrics vary less between identical runs", o.Plan.Figures)
		}
	}
	if len(byspread) == 0 && !advice {
		return nil, exitcode.Usagef("no metric of scenario %s is known to vary by at most %.1f%% between identical runs, so no metric can decide the answer (choose metrics with --metric; to measure how much each metric varies, run `loadgen ab %s` without --a and --b)",
			o.A.Scenario.Name, 100*o.Plan.Spread, o.A.Scenario.Name)
	}
	return gatedFirst(all), nil
}

// AllFigures is the value of --metric that makes all compared metrics decide the answer.
const AllFigures = "all"

func choose(all []result.ABFigure, names []string) ([]result.ABFigure, error) {
	known := []string{AllFigures}
	for i := range all {
		known = append(known, all[i].Name)
		if all[i].Gated = slices.Contains(names, all[i].Name) || slices.Contains(names, AllFigures); !all[i].Gated {
			all[i].Advice = "--metric does not name it"
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, exitcode.Usagef("--metric %s: the scenario has no such metric (%s)", name, strictyaml.Hint(name, known, "it has "+strings.Join(known, ", ")))
		}
	}
	return gatedFirst(all), nil
}

func gatedFirst(all []result.ABFigure) []result.ABFigure {
	slices.SortStableFunc(all, func(a, b result.ABFigure) int {
		switch {
		case a.Gated == b.Gated:
			return 0
		case a.Gated:
			return -1
		}
		return 1
	})
	return all
}
