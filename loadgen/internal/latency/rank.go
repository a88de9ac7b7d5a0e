package latency

import "math"

// Rank returns the rank of the q-quantile of n values by the nearest-rank method, where the smallest value has rank 1.
// It is the ceiling of q*n: 0 for n = 0, and from 1 to n otherwise.
//
// The ceiling leaves at most a fraction of 1-q of the values above the quantile: of 60 values, the p99 is the largest.
func Rank(q float64, n int64) int64 {
	exact := q * float64(n)
	rank := math.Ceil(exact)
	// A product may be wrong in its last digits: 0.07*100 exceeds 7. For quantiles with three decimals, products that
	// are not whole numbers differ from the next whole number by at least 1/1000.
	if near := math.Round(exact); math.Abs(exact-near) <= 1e-13*exact {
		rank = near
	}
	return max(min(int64(rank), n), min(1, n))
}

// Needs returns the smallest number of values for which the q-quantile is not the maximum: 2 for a median, 100 for a
// p99, 1000 for a p99.9. It returns 0 for a q of 1, whose quantile is always the maximum.
func Needs(q float64) int64 {
	if q >= 1 {
		return 0
	}
	return int64(math.Ceil(1/(1-q) - 1e-9/(1-q)))
}
