package recording

import "math"

// Dispersion returns the variance of the first n counts divided by their mean (Fano factor): 0 for an even process, 1
// for a Poisson process, more for bursts. If counts is shorter than n, the missing counts are 0. Dispersion returns 0 if
// the sum of the counts is 0 or n is below 2.
func Dispersion[N int32 | int64](counts []N, n int) float64 {
	if n < 2 {
		return 0
	}
	counts = counts[:min(n, len(counts))]
	sum := 0.0
	for _, c := range counts {
		sum += float64(c)
	}
	mean := sum / float64(n)
	if mean == 0 {
		return 0
	}
	squares := float64(n-len(counts)) * mean * mean
	for _, c := range counts {
		squares += (float64(c) - mean) * (float64(c) - mean)
	}
	return squares / float64(n-1) / mean
}

// DispersionError returns the difference between the dispersions of the sent and the due requests, as a fraction of the
// dispersion of the due requests. It divides by at least 1, the dispersion of a Poisson process, because the dispersion
// of an evenly spaced recording is 0.
func DispersionError(due, sent float64) float64 { return math.Abs(sent-due) / max(due, 1) }
