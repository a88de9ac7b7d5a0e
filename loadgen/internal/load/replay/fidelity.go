package replay

import (
	"math"
	"time"
)

// count is how many requests of one verb, resource and actor were due, and how many of them were sent.
type count struct{ due, sent int64 }

// rateError returns the largest difference between sent and due requests of any group, as a share of the due requests,
// and that group. If nothing was due, the group is -1.
func rateError(groups []count) (worst float64, of int) {
	of = -1
	for i, c := range groups {
		if c.due == 0 {
			continue
		}
		if e := math.Abs(float64(c.sent-c.due)) / float64(c.due); of < 0 || e > worst {
			worst, of = e, i
		}
	}
	return worst, of
}

// dispersion returns the variance of counts over their mean (Fano factor): 1 for a Poisson process, 0 for an even one,
// more for bursts. Without arrivals, or for one count, it is 0.
func dispersion(counts []int64) float64 {
	if len(counts) < 2 {
		return 0
	}
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
	}
	mean := sum / float64(len(counts))
	if mean == 0 {
		return 0
	}
	for _, c := range counts {
		d := float64(c) - mean
		squares += d * d
	}
	return squares / float64(len(counts)-1) / mean
}

// dispersionError returns the difference of two dispersions, as a share of the trace's. If the trace is more even than
// a Poisson process, it is a share of the Poisson process's: an even trace would make any difference infinite.
func dispersionError(due, sent float64) float64 { return math.Abs(sent-due) / max(due, 1) }

// bins counts arrivals by second.
type bins []int64

func (b *bins) add(at time.Duration) {
	i := int(at / time.Second)
	if i < 0 {
		return
	}
	for len(*b) <= i {
		*b = append(*b, 0)
	}
	(*b)[i]++
}

// whole returns the counts of the given number of seconds.
func (b bins) whole(seconds int) []int64 {
	counts := make([]int64, seconds)
	copy(counts, b)
	return counts
}

// leastSeconds is the shortest replay whose dispersion is judged.
const leastSeconds = 5
