package ab

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/stormglass/stormglass/loadgen/result"
)

// sidesOf returns the statistic for the values of A and of B: the geometric mean, or the arithmetic mean if a value is
// 0 or negative.
func sidesOf(a, b []float64) result.Statistic {
	for _, v := range slices.Concat(a, b) {
		if v <= 0 {
			return result.Mean
		}
	}
	return result.GeometricMean
}

// showSides sets the values that reports show for A and B. how is the statistic from which the change was computed, so
// the change matches the two values.
func showSides(f *result.ABFigure, how result.Statistic, a, b []float64) {
	f.Statistic = how
	weights := make([]float64, len(a))
	for i, v := range a {
		weights[i] = 1
		if how == result.WeightedMean {
			weights[i] = 1 / v
		}
	}
	of := func(values []float64) *float64 {
		switch {
		case len(values) == 0:
			return nil
		case how == result.GeometricMean:
			return known(math.Exp(stat.Mean(logs(values), nil)))
		case how == result.WeightedMean:
			return known(stat.Mean(values, weights))
		}
		return known(stat.Mean(values, nil))
	}
	f.A, f.B = of(a), of(b)
}
