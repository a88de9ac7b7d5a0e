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
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// floorShare is the minimum noise of a signal, as a fraction of its largest absolute value in the phases `steady`
	// and `under`. Without it, any change of a constant signal would be infinitely many times its noise. With it, no
	// signal changes by more than 200 times its noise.
	floorShare = 0.01
	// minSamples is the minimum number of samples of a signal in a set of phases. Fewer samples cannot be split into
	// thirds.
	minSamples = 3
	// A signal has returned to normal if its distance from the steady mean is at most returnNoises times its noise, or
	// at most the fraction returnShare of its change in the phases `under`.
	returnNoises = 3
	returnShare  = 0.1
)

// judge compares the samples of a signal in its `steady`, `under` and `after` phases. The samples must be sorted by
// time.
func judge(s scenario.Signal, steady, under, after []result.SignalPoint) result.Signal {
	r := result.Signal{Name: s.Name, Expr: s.Expr, Unit: s.Unit, Steady: window(s.Steady, steady), Under: window(s.Under, under)}
	if len(s.After) > 0 {
		r.After = new(window(s.After, after))
	}
	for _, w := range []struct {
		name string
		n    int
	}{{"steady", len(steady)}, {"under", len(under)}} {
		if w.n < minSamples {
			r.Detail = fmt.Sprintf("only %d samples in the %s phases; at least %d are required", w.n, w.name, minSamples)
			return r
		}
	}
	mean := r.Steady.Mean
	largest := 0.0
	for _, w := range []result.SignalWindow{r.Steady, r.Under} {
		largest = max(largest, math.Abs(w.Min), math.Abs(w.Max))
	}
	r.Noise = r.Steady.StdDev
	if least := floorShare * largest; r.Noise < least {
		r.Noise, r.Floor = least, true
	}
	r.Extreme = farThird(under, mean)
	moved := 0.0
	if r.Noise > 0 { // Noise is 0 if all samples are zero
		moved = math.Abs(r.Extreme-mean) / r.Noise
	}
	r.Moved = &moved
	if r.After == nil {
		return r
	}
	if len(after) < minSamples {
		r.Detail = fmt.Sprintf("%d samples in the phases after the fault; %d are needed to tell whether the signal returned to its steady value", len(after), minSamples)
		return r
	}
	last := meanOf(after[len(after)-third(len(after)):])
	near := max(returnNoises*r.Noise, returnShare*math.Abs(r.Extreme-mean))
	returned := math.Abs(last-mean) <= near
	r.Last, r.Returned = &last, &returned
	return r
}

func window(phases []string, points []result.SignalPoint) result.SignalWindow {
	w := result.SignalWindow{Phases: phases, Samples: len(points), Points: points}
	if len(points) == 0 {
		return w
	}
	w.Mean, w.Min, w.Max = meanOf(points), points[0].Value, points[0].Value
	squares := 0.0
	for _, p := range points {
		w.Min, w.Max = min(w.Min, p.Value), max(w.Max, p.Value)
		squares += (p.Value - w.Mean) * (p.Value - w.Mean)
	}
	if n := len(points); n > 1 {
		w.StdDev = math.Sqrt(squares / float64(n-1))
	}
	return w
}

func third(n int) int { return (n + 2) / 3 }

// farThird returns the mean of the highest or of the lowest third of the samples, whichever is farther from mean. It
// uses a third because a single sample may be an outlier, and the mean of all samples may hide an effect that begins
// late.
func farThird(points []result.SignalPoint, mean float64) float64 {
	sorted := slices.Clone(points)
	slices.SortFunc(sorted, func(x, y result.SignalPoint) int { return cmp.Compare(x.Value, y.Value) })
	n := third(len(sorted))
	low, high := meanOf(sorted[:n]), meanOf(sorted[len(sorted)-n:])
	if math.Abs(low-mean) > math.Abs(high-mean) {
		return low
	}
	return high
}

// meanOf returns the mean of the points. It averages differences from the first point, so that the mean of a constant
// signal is exactly its value.
func meanOf(points []result.SignalPoint) float64 {
	sum := 0.0
	for _, p := range points {
		sum += p.Value - points[0].Value
	}
	return points[0].Value + sum/float64(len(points))
}

// query evaluates PromQL at one time and returns a value for each series.
type query func(ctx context.Context, expr string, at time.Time) ([]float64, error)

// lookBack is the length of $window in scrape intervals. $window then always contains two scrapes, which a rate needs.
const lookBack = 2.5

// Signals samples the signals of the scenario and evaluates the samples. Without an archive, there are no samples.
// Signals fails only if ctx ends. If an expression does not return exactly one number, the detail of the signal says
// so.
//
// In each phase, it evaluates an expression once per scrape interval. $window never begins before the start of the
// phase, so no sample covers two phases. In a phase shorter than $window, it evaluates the expression once, at the end
// of the phase and over its whole length.
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

// sample evaluates an expression in the phases with the given names. `missing` is the reason why there are too few
// samples, or "".
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
				missing = fmt.Sprintf("the expression returns %d series instead of one (aggregate them, for example with max or sum)", len(values))
			case len(values) == 1 && !math.IsNaN(values[0]) && !math.IsInf(values[0], 0):
				points = append(points, result.SignalPoint{Time: at, Value: values[0]})
			}
		}
	}
	if reached < len(names) {
		missing = "not all of the phases " + strings.Join(names, ", ") + " were reached"
	}
	if missing == "" && len(points) == 0 {
		missing = "the expression returned no number in these phases"
	}
	return points, missing, nil
}

// moments returns the times in a phase at which to sample a signal. The last one is the
// end of the phase, at which there is a scrape.
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

// fill replaces $window in an expression with `window` plus a millisecond, because PromQL excludes the start of a
// range.
func fill(expr string, window time.Duration) string {
	return strings.ReplaceAll(expr, "$window", fmt.Sprintf("%dms", window.Milliseconds()+1))
}
