package recovery

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// query evaluates PromQL at one moment: a value for each series.
type query func(ctx context.Context, expr string, at time.Time) ([]float64, error)

// lookBack is $window, in intervals between scrapes: two and a half always
// hold two scrapes, which a rate needs.
const lookBack = 2.5

// Signals samples the scenario's signals and judges them. Without an archive there are
// no samples. An error is the context's end only: an expression that gives no one
// number is reported in the signal's detail.
//
// Within a phase an expression is evaluated once each scrape interval, first when
// $window reaches back to the phase's start, so that no sample covers two phases; in a
// phase shorter than that once, at its end, over all of it.
func Signals(ctx context.Context, rec *rundir.Recorded) ([]result.Signal, error) {
	return signals(ctx, rec, func(ctx context.Context, expr string, at time.Time) ([]float64, error) {
		if rec.Archive == nil {
			return nil, nil
		}
		samples, err := rec.Archive.Instant(ctx, expr, at)
		var all []float64
		for _, s := range samples {
			all = append(all, s.V)
		}
		return all, err
	})
}

func signals(ctx context.Context, rec *rundir.Recorded, ask query) ([]result.Signal, error) {
	var all []result.Signal
	for _, s := range rec.Scenario.Signals {
		var windows [3][]result.SignalPoint
		var why string
		for i, names := range [][]string{s.Steady, s.Under, s.After} {
			points, missing, err := sample(ctx, s.Expr, names, rec, ask)
			if err != nil {
				return all, err
			}
			windows[i] = points
			why = cmp.Or(why, missing)
		}
		r := judge(s, windows[0], windows[1], windows[2])
		if r.Detail != "" && why != "" {
			r.Detail += " (" + why + ")"
		}
		all = append(all, r)
	}
	return all, nil
}

// sample evaluates an expression over some phases. missing says why samples
// are not there that could be.
func sample(ctx context.Context, expr string, names []string, rec *rundir.Recorded, ask query) (points []result.SignalPoint, missing string, err error) {
	if len(names) == 0 {
		return nil, "", nil
	}
	reached, interval := 0, rec.Scenario.Record.Interval.D()
	for _, p := range rec.Measurements.Phases {
		if !slices.Contains(names, p.Name) {
			continue
		}
		reached++
		for _, at := range moments(p, interval) {
			back := min(time.Duration(lookBack*float64(interval)), at.Sub(p.Start))
			values, err := ask(ctx, fill(expr, back), at)
			switch {
			case ctx.Err() != nil:
				return nil, "", ctx.Err()
			case err != nil:
				missing = err.Error()
			case len(values) > 1:
				missing = fmt.Sprintf("the expression gives %d series, not one (aggregate them: max, sum)", len(values))
			case len(values) == 1 && !math.IsNaN(values[0]) && !math.IsInf(values[0], 0):
				points = append(points, result.SignalPoint{Time: at, Value: values[0]})
			}
		}
	}
	if reached < len(names) {
		missing = "not all of the phases " + strings.Join(names, ", ") + " were reached"
	}
	if missing == "" && len(points) == 0 {
		missing = "the expression gave no number there"
	}
	return points, missing, nil
}

// moments of a phase at which a signal is sampled; the last is its end, as
// that is a scrape.
func moments(p result.Phase, interval time.Duration) []time.Time {
	first := p.Start.Add(time.Duration(lookBack * float64(interval)))
	var all []time.Time
	for at := p.End; interval > 0 && !at.Before(first); at = at.Add(-interval) {
		all = append(all, at)
	}
	if len(all) == 0 && p.End.After(p.Start) {
		all = append(all, p.End)
	}
	slices.Reverse(all)
	return all
}

// fill puts the window into an expression: a millisecond more than it is long,
// as PromQL leaves out what lies at a range's beginning.
func fill(expr string, window time.Duration) string {
	return strings.ReplaceAll(expr, "$window", fmt.Sprintf("%dms", window.Milliseconds()+1))
}
