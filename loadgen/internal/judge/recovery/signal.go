package recovery

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// floorShare is the least noise there is, as a share of the largest absolute
	// value: a line that lies flat would move by infinity. As both the steady and
	// the under samples count for it, nothing moves by more than 200.
	floorShare = 0.01
	// leastSamples to judge a stretch by: with two there is no third of them.
	leastSamples = 3
	// returnNoises and returnShare of the movement are how near to the steady mean
	// a signal has to come to have returned.
	returnNoises = 3
	returnShare  = 0.1
)

// judge compares the samples of a signal. Points are in the order of time.
func judge(s scenario.Signal, steady, under, after []result.SignalPoint) result.Signal {
	r := result.Signal{Name: s.Name, Expr: s.Expr, Unit: s.Unit, Steady: window(s.Steady, steady), Under: window(s.Under, under)}
	if len(s.After) > 0 {
		w := window(s.After, after)
		r.After = &w
	}
	for _, w := range []struct {
		name string
		n    int
	}{{"steady", len(steady)}, {"under", len(under)}} {
		if w.n < leastSamples {
			r.Detail = fmt.Sprintf("%d samples in the %s phases; %d are needed", w.n, w.name, leastSamples)
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
	if r.Noise > 0 { // it is not where all samples are zero
		moved = math.Abs(r.Extreme-mean) / r.Noise
	}
	r.Moved = &moved
	if r.After == nil {
		return r
	}
	if len(after) < leastSamples {
		r.Detail = fmt.Sprintf("%d samples in the after phases; %d are needed to tell whether it returned", len(after), leastSamples)
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

// farThird is the mean of the highest or of the lowest third of the samples,
// whichever is farther from the mean. A third, as one sample may be an accident,
// and the mean of all hides a fault that shows late.
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

// meanOf is taken of differences from the first, so that a line that lies flat
// has its own value as its mean, to the last bit.
func meanOf(points []result.SignalPoint) float64 {
	sum := 0.0
	for _, p := range points {
		sum += p.Value - points[0].Value
	}
	return points[0].Value + sum/float64(len(points))
}
