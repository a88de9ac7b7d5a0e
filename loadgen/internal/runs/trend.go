package runs

import (
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/judge/changepoint"
	"github.com/stormglass/stormglass/loadgen/result"
)

// maxFigures is the maximum number of metrics of a trend.
const maxFigures = 2 * maxValues

// Trend returns the values of all gates, compared metrics and key metrics of runs, and the runs at which they changed. all
// must be runs of one scenario, in the order of their start. A run without data has the value nil. The search for changes
// skips runs without data, and runs that are unfit for a comparison; Notes names the unfit runs.
func Trend(all []*Entry) result.Trend {
	t := result.Trend{Schema: result.TrendSchema}
	for _, e := range all {
		t.Scenario = e.Scenario
		t.Runs = append(t.Runs, result.TrendRun{Dir: e.Path, Started: e.Started, Versions: e.Versions})
		if e.Unfit != "" {
			t.Notes = append(t.Notes, e.Path+" is left out: "+e.Unfit)
		}
	}
	for _, e := range slices.Backward(all) { // the newest run has the units that count
		for _, v := range e.Values {
			if len(t.Figures) < maxFigures && !slices.ContainsFunc(t.Figures, func(f result.TrendFigure) bool { return f.Name == v.Name }) {
				t.Figures = append(t.Figures, result.TrendFigure{Name: v.Name, Unit: v.Unit, Better: v.Better, Changes: []result.TrendChange{}})
			}
		}
	}
	for i := range t.Figures {
		f := &t.Figures[i]
		values := make([]*float64, len(all))
		for j, e := range all {
			if v := e.Of(f.Name); v != nil && e.Unfit == "" && v.Unit == f.Unit {
				values[j] = v.Value
			}
		}
		Follow(f, values)
	}
	return t
}

// Follow sets the values of a metric in all runs, and finds its spikes and changes. A run without data has the value nil,
// and is skipped in the search.
func Follow(f *result.TrendFigure, values []*float64) {
	f.Values = values
	var known []float64
	var of []int
	for i, v := range values {
		if v != nil {
			known, of = append(known, *v), append(of, i)
		}
	}
	for _, at := range slices.Backward(changepoint.Spikes(known)) {
		f.Spikes = append(f.Spikes, of[at])
		known, of = slices.Delete(known, at, at+1), slices.Delete(of, at, at+1)
	}
	slices.Reverse(f.Spikes)
	for _, p := range changepoint.Find(changepoint.Default(), known) {
		f.Changes = append(f.Changes, result.TrendChange{Run: of[p.Index], Before: p.Before, After: p.After, P: p.P})
	}
}

// Of returns the gate or metric with the given name, or nil.
func (e *Entry) Of(name string) *Value {
	i := slices.IndexFunc(e.Values, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &e.Values[i]
}
