package replay

import (
	"math"
	"time"
)

// count contains the numbers of due and of sent requests in one group. A group has one kind of request, one actor and
// one copy.
type count struct{ due, sent int64 }

// rateError returns the largest difference between sent and due requests of any group, as a fraction of the group's due
// requests. of is the index of that group, or -1 if no requests were due.
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

// dispersion returns the variance of counts divided by their mean (Fano factor): 0 for an even process, 1 for a Poisson
// process, more for bursts. It returns 0 if there are no arrivals or fewer than two counts.
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

// dispersionError returns the difference between the dispersions of the sent and the due requests, as a fraction of the
// dispersion of the due requests. It divides by at least 1, the dispersion of a Poisson process, because the dispersion
// of an evenly spaced trace is 0.
func dispersionError(due, sent float64) float64 { return math.Abs(sent-due) / max(due, 1) }

// bins counts arrivals in each second since the load's start.
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

// whole returns the counts for the given number of seconds from the load's start.
func (b bins) whole(seconds int) []int64 {
	counts := make([]int64, seconds)
	copy(counts, b)
	return counts
}

// leastSeconds is the minimum length, in seconds, of a replay whose dispersion is compared.
const leastSeconds = 5
