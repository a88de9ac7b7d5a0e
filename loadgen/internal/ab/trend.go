package ab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/changepoint"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Trend reads the runs in dirs, sorts them by start, and finds the runs at which metrics changed.
func Trend(ctx context.Context, dirs []string) (t result.Trend, err error) {
	var all []recorded
	for _, dir := range dirs {
		set, err := readSet(ctx, dir)
		if err != nil {
			return t, err
		}
		all = append(all, set...)
	}
	all = once(all)
	slices.SortStableFunc(all, func(a, b recorded) int { return a.result.Run.Started.Compare(b.result.Run.Started) })
	first := all[0]
	t = result.Trend{Schema: result.TrendSchema, Scenario: first.scenario.Name}
	for _, r := range all {
		if field := unlike(first.scenario, r.scenario); field != "" {
			return t, exitcode.Usagef("%s and %s ran scenarios that differ in %s (a trend needs runs of the same scenario)", first.dir, r.dir, field)
		}
		t.Runs = append(t.Runs, result.TrendRun{Dir: r.dir, Started: r.result.Run.Started, Versions: r.result.Run.Versions})
	}
	for _, r := range all {
		for _, f := range r.result.Figures {
			if !slices.ContainsFunc(t.Figures, func(known result.TrendFigure) bool { return known.Name == f.Name }) {
				t.Figures = append(t.Figures, result.TrendFigure{Name: f.Name, Unit: f.Unit, Better: f.Better, Changes: []result.TrendChange{}})
			}
		}
	}
	if len(t.Figures) == 0 {
		return t, exitcode.UsageError(first.scenario.Errorf("compare", noFigures, "scenario %s has no metrics to compare", first.scenario.Name))
	}
	last := all[len(all)-1].scenario // a run has no value for a figure that its scenario defines differently from `last`
	members := make([]result.Member, len(all))
	for i, r := range all {
		members[i] = memberLike(new(result.AB), last, r)
		m := members[i]
		why := r.result.Run.CutShort()
		if why == "" && len(m.Unfit) > 0 {
			why = m.Unfit[0]
		}
		if why != "" {
			members[i].Values = nil
			t.Notes = append(t.Notes, r.dir+leftOut+why)
		} else if len(m.AtLeast) > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: only a lower bound of %s is known", r.dir, strings.Join(m.AtLeast, ", ")))
		}
	}
	if n := len(all); n < changepoint.MinValues {
		t.Notes = append(t.Notes, fmt.Sprintf("%d runs: a trend needs at least %d to find a change", n, changepoint.MinValues))
	}
	for i := range t.Figures {
		f := &t.Figures[i]
		values := make([]*float64, len(members))
		for j, m := range members {
			if v, ok := m.Values[f.Name]; ok {
				values[j] = &v
			}
		}
		runs.Follow(f, values)
	}
	return t, nil
}
