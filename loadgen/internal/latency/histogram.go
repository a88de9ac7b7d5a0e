// Package latency measures distributions of durations in bounded memory, for
// everything in the generator that reports a result.Latency.
package latency

import (
	"sort"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Lowest is the smallest duration that is told apart from zero.
const Lowest = time.Microsecond

// digits of significance: a quantile is within 0.1% of the true value.
const digits = 3

// Histogram is a distribution of durations with quantiles true to three
// significant digits, in constant memory: about 150 KB for a highest value of
// two minutes, and next to nothing until the first value over zero comes. It is
// safe for concurrent use.
type Histogram struct {
	highest time.Duration

	mu      sync.Mutex
	counts  *hdrhistogram.Histogram // nanoseconds, of values over zero; nil until the first
	zeros   int64
	sum     float64 // nanoseconds; exact, where the buckets are not
	max     time.Duration
	clamped int64
}

// New makes a histogram of durations up to highest. Values past it are counted
// in the last bucket and reported as result.Latency.Clamped; the maximum and
// the mean stay exact.
func New(highest time.Duration) *Histogram {
	return &Histogram{highest: max(highest, time.Millisecond)}
}

// Record counts d once.
func (h *Histogram) Record(d time.Duration) { h.RecordN(d, 1) }

// RecordN counts d n times. A negative d counts as zero: two readings of a
// clock may be out of order, time is not.
func (h *Histogram) RecordN(d time.Duration, n int64) {
	if n <= 0 {
		return
	}
	d = max(d, 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	if d == 0 { // as most waits are: they need no buckets
		h.zeros += n
		return
	}
	if h.counts == nil {
		h.counts = hdrhistogram.New(int64(Lowest), int64(h.highest), digits)
	}
	h.sum += float64(d) * float64(n)
	h.max = max(h.max, d)
	if d > h.highest {
		h.clamped += n
	}
	// Cannot fail: the value is within the range.
	_ = h.counts.RecordValues(int64(min(d, h.highest)), n)
}

// quantile is the smallest duration that at least a fraction q (0 to 1) of the values do not exceed (the nearest-rank
// method); zero if empty.
func (h *Histogram) quantile(q float64) time.Duration { return h.ranked(Rank(q, h.count())) }

// ranked is the value of a rank, counted from 1 for the smallest; zero for rank 0.
func (h *Histogram) ranked(rank int64) time.Duration {
	if rank <= h.zeros {
		return 0
	}
	n := h.count()
	// The upper edge of a bucket may lie past the largest value in it.
	v := min(time.Duration(h.counts.ValueAtQuantile(100*float64(rank-h.zeros)/float64(n-h.zeros))), h.max)
	if v < Lowest {
		return 0
	}
	return v
}

// CountOver is how many values were over d, to three digits of d.
func (h *Histogram) CountOver(d time.Duration) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil || h.max <= d {
		return 0
	}
	var n int64
	for _, bar := range h.counts.Distribution() {
		if bar.From > int64(d) {
			n += bar.Count
		}
	}
	return n
}

func (h *Histogram) count() int64 {
	if h.counts == nil {
		return h.zeros
	}
	return h.zeros + h.counts.TotalCount()
}

// Latency is the distribution so far.
func (h *Histogram) Latency() result.Latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.latency()
	if over, ok := AllowedOver(l.Count); ok {
		l.P99Upper = new(h.ranked(l.Count - over).Seconds())
	}
	return l
}

// confidence of an upper bound of the p99.
const confidence = 0.99

// AllowedOver is how many of n values may be over a bound where it is shown, with 99% confidence, that at most 1% of
// all are: none of 459, 1 of 662, 2 of 838, as MLPerf's LoadGen has it. False: n are too few for any bound.
func AllowedOver(n int64) (over int64, ok bool) {
	b := distuv.Binomial{N: float64(n), P: 0.01}
	// The first count that is too many.
	over = int64(sort.Search(int(n/100)+1, func(k int) bool { return b.CDF(float64(k)) > 1-confidence })) - 1
	return over, over >= 0
}

// Take is the distribution since the last Take, which it forgets: a window of
// a live display.
func (h *Histogram) Take() result.Latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.latency()
	if h.counts != nil {
		h.counts.Reset()
	}
	h.zeros, h.sum, h.max, h.clamped = 0, 0, 0, 0
	return l
}

func (h *Histogram) latency() result.Latency {
	n := h.count()
	if n == 0 {
		return result.Latency{}
	}
	return result.Latency{
		Count:   n,
		Mean:    h.sum / float64(n) / float64(time.Second),
		P50:     h.quantile(0.50).Seconds(),
		P90:     h.quantile(0.90).Seconds(),
		P95:     h.quantile(0.95).Seconds(),
		P99:     h.quantile(0.99).Seconds(),
		P999:    h.quantile(0.999).Seconds(),
		Max:     h.max.Seconds(),
		Clamped: h.clamped,
	}
}
