// Package changepoint finds the runs at which a metric changed, given its values over many runs. It uses E-divisive
// means (Matteson and James, A nonparametric approach for multiple change point analysis of multivariate data, 2014),
// with Welch's t-test instead of permutations, like Apache Otava (Hunter). It is meant for long histories; to compare
// two versions, use package paired.
package changepoint

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Options configure a search.
type Options struct {
	Alpha  float64 // maximum two-sided p-value of a change
	Change float64 // minimum change of the mean: 0.05 is 5%
	Window int     // maximum number of values that the test uses on each side of a change
}

// Default returns Otava's options, with a minimum change of 5%.
func Default() Options { return Options{Alpha: 0.001, Change: 0.05, Window: 50} }

// Point is a change of the mean in a history of values.
type Point struct {
	Index         int     // index of the first value after the change
	Before, After float64 // means of the values before and after the change
	P             float64 // two-sided p-value of the change
}

// Change returns the relative change of the mean: 0.05 is an increase by 5%.
func (p Point) Change() float64 { return p.After/p.Before - 1 }

// least is the minimum number of values on each side of a change.
const least = 3

// MinValues is the minimum number of values in which a change can be found.
const MinValues = 2 * least

// Find returns the changes in a history of values, in order.
func Find(o Options, values []float64) []Point {
	splits := []int{0, len(values)}
	for grew := true; grew; {
		grew = false
		for i := 0; i+1 < len(splits); i++ {
			from, to := splits[i], splits[i+1]
			var at []int
			if single, ok := split(values[from:to]); ok && o.isChange(o.judge(values, from, from+single, to)) {
				at = []int{from + single}
			} else if at = o.bump(values, from, to); at == nil {
				continue
			}
			splits = slices.Insert(splits, i+1, at...)
			grew = true
			break
		}
	}
	// Remove splits that are no longer significant, because splits found later explain the change.
	for i := 1; i+1 < len(splits); {
		if o.isChange(o.judge(values, splits[i-1], splits[i], splits[i+1])) {
			i++
			continue
		}
		splits = slices.Delete(splits, i, i+1)
		i = max(1, i-1)
	}
	var all []Point
	for i := 1; i+1 < len(splits); i++ {
		all = append(all, o.judge(values, splits[i-1], splits[i], splits[i+1]))
	}
	return all
}

func (o Options) isChange(p Point) bool {
	return p.P <= o.Alpha && math.Abs(p.After-p.Before) >= o.Change*math.Abs(p.Before)
}

// judge tests whether the mean of values[from:to] changes at the index `at`. It uses at most o.Window values on each
// side.
func (o Options) judge(values []float64, from, at, to int) Point {
	a, b := values[max(from, at-o.Window):at], values[at:min(to, at+o.Window)]
	p := Point{Index: at, P: 1}
	p.Before, p.After, p.P = welch(a, b)
	return p
}

// welch returns the means of a and b, and the two-sided p-value of Welch's t-test between them.
func welch(a, b []float64) (meanA, meanB, p float64) {
	meanA, va := stat.MeanVariance(a, nil)
	meanB, vb := stat.MeanVariance(b, nil)
	va, vb = va/float64(len(a)), vb/float64(len(b))
	if va+vb == 0 {
		if meanA != meanB {
			return meanA, meanB, 0
		}
		return meanA, meanB, 1
	}
	nu := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	t := math.Abs(meanB-meanA) / math.Sqrt(va+vb)
	return meanA, meanB, 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}.Survival(t)
}

// bump returns the start and end of the part of values[from:to] that differs most from the values on both sides of it,
// or nil if it does not differ significantly. A single split does not find a change that ends soon, because the values
// on both sides of the split have similar means. The test is circular binary segmentation (Olshen and others, 2004),
// with Bonferroni's correction of the p-value for the number of compared parts.
func (o Options) bump(values []float64, from, to int) []int {
	n := to - from
	if n < 3*least {
		return nil
	}
	sums := make([]float64, n+1)
	for i, v := range values[from:to] {
		sums[i+1] = sums[i] + v
	}
	best, first, last, parts := 0.0, 0, 0, 0.0
	for i := least; i+2*least <= n; i++ {
		for j := i + least; j+least <= n; j++ {
			parts++
			inside, outside := float64(j-i), float64(n-j+i)
			d := (sums[j]-sums[i])/inside - (sums[n]-sums[j]+sums[i])/outside
			if q := d * d * inside * outside; q > best { // n times the variance between inside and outside
				best, first, last = q, from+i, from+j
			}
		}
	}
	if best == 0 {
		return nil
	}
	outside := slices.Concat(values[from:first], values[last:to])
	before, after, p := welch(outside, values[first:last])
	if p *= parts; !o.isChange(Point{Before: before, After: after, P: p}) {
		return nil
	}
	return []int{first, last}
}

// split returns the index that divides the values into the two parts that differ most. The measure is their energy
// distance, weighted by their lengths. ok is false if there are too few values.
func split(x []float64) (at int, ok bool) {
	n := len(x)
	if n < MinValues {
		return 0, false
	}
	// left, right and across are sums of |xi-xj|, updated each time the split moves by one value.
	left, right, across := 0.0, 0.0, 0.0
	for i := range n {
		for j := i + 1; j < n; j++ {
			right += math.Abs(x[i] - x[j])
		}
	}
	best := math.Inf(-1)
	for k := 1; k <= n-least; k++ { // x[k-1] moves to the left
		for i := range n {
			d := math.Abs(x[i] - x[k-1])
			if i < k-1 {
				left += d
				across -= d
			} else {
				right -= d
				across += d
			}
		}
		if k < least {
			continue
		}
		l, r := float64(k), float64(n-k)
		q := l * r / (l + r) * (2*across/(l*r) - 2*left/(l*(l-1)) - 2*right/(r*(r-1)))
		if q > best {
			best, at = q, k
		}
	}
	return at, true
}

// Spikes returns the indexes of single outliers. Their distance from the median of the three values on each side is
// more than a quarter of that median, and more than six times the median deviation from it. An outlier is not a change
// of the mean, but hides a change nearby, so callers of Find leave it out.
func Spikes(values []float64) (at []int) {
	const reach, share, deviations = 3, 0.25, 6
	for i, v := range values {
		near := slices.Concat(values[max(0, i-reach):i], values[i+1:min(len(values), i+1+reach)])
		if len(near) < reach {
			continue
		}
		middle := median(near)
		for j := range near {
			near[j] = math.Abs(near[j] - middle)
		}
		if d := math.Abs(v - middle); d > share*math.Abs(middle) && d > deviations*median(near) {
			at = append(at, i)
		}
	}
	return at
}

// median returns the median of values, and sorts them.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
