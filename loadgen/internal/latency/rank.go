package latency

import "math"

// Rank returns the rank of the q-quantile of n values by the nearest-rank method. The smallest value has rank 1. The
// rank is the ceiling of q*n: 0 if n is 0, otherwise from 1 to n.
//
// At most the fraction 1-q of the values is above the quantile, because of the ceiling. For example, the p99 of 60
// values is the largest value.
func Rank(q float64, n int64) int64 {
	exact := q * float64(n)
	rank := math.Ceil(exact)
	// The product may have a rounding error: 0.07*100 exceeds 7. For quantiles with three decimals, products that are
	// not whole numbers differ from the next whole number by at least 1/1000.
	if near := math.Round(exact); math.Abs(exact-near) <= 1e-13*exact {
		rank = near
	}
	return max(min(int64(rank), n), min(1, n))
}

// Needs returns the smallest number of values for which the q-quantile is not the maximum: 2 for a median, 100 for a
// p99, 1000 for a p99.9. If q is 1, Needs returns 0, because that quantile is always the maximum.
func Needs(q float64) int64 {
	if q >= 1 {
		return 0
	}
	return int64(math.Ceil(1/(1-q) - 1e-9/(1-q)))
}
