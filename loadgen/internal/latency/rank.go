package latency

import "math"

// Rank is the rank of the q-quantile of n values by the nearest-rank method, counted from 1 for the smallest: the
// ceiling of q*n. It is 0 for n = 0, and from 1 to n otherwise.
//
// The ceiling leaves no more than a share of 1-q of the values above the quantile: of 60 values the p99 is the largest.
func Rank(q float64, n int64) int64 {
	exact := q * float64(n)
	rank := math.Ceil(exact)
	// A product may be off in its last digits, as 0.07*100 is over 7. Ranks that differ from a whole number by more
	// lie at least 1/1000 away from it, with quantiles of three decimals.
	if near := math.Round(exact); math.Abs(exact-near) <= 1e-13*exact {
		rank = near
	}
	return max(min(int64(rank), n), min(1, n))
}

// Needs is the least number of values with which the q-quantile leaves any out: 2 for a median, 100 for a p99, 1000 for
// a p99.9. Of fewer values the quantile is their maximum. It is 0 for q of 1, which leaves none out of any number.
func Needs(q float64) int64 {
	if q >= 1 {
		return 0
	}
	return int64(math.Ceil(1/(1-q) - 1e-9/(1-q)))
}
