// Package latency measures distributions of durations in bounded memory. All parts of the generator that report a
// result.Latency use it.
package latency

import (
	"sort"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Lowest is the smallest duration that a Histogram distinguishes from zero.
const Lowest = time.Microsecond

// digits is the number of significant digits of a quantile: the error of a quantile is at most 0.1%.
const digits = 3

// Histogram is a distribution of durations. Its quantiles are accurate to three significant digits. Its memory does
// not grow with the number of values: it is about 150 KB for a highest value of two minutes, and almost nothing until
// the first value above zero is recorded. It is safe for concurrent use.
type Histogram struct {
	highest time.Duration

	mu      sync.Mutex
	counts  *hdrhistogram.Histogram // values above zero, in nanoseconds; nil until the first one
	zeros   int64
	sum     float64 // exact sum in nanoseconds
	max     time.Duration
	clamped int64
}

// New returns a histogram of durations up to highest. Longer durations count in the last bucket and in
// result.Latency.Clamped. The maximum and the mean are exact.
func New(highest time.Duration) *Histogram {
	return &Histogram{highest: max(highest, time.Millisecond)}
}

// Record counts d once.
func (h *Histogram) Record(d time.Duration) { h.RecordN(d, 1) }

// RecordN counts d n times. A negative d counts as zero; it occurs if two readings of a clock are out of order.
func (h *Histogram) RecordN(d time.Duration, n int64) {
	if n <= 0 {
		return
	}
	d = max(d, 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	if d == 0 { // zero is frequent for waits, and needs no bucket
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

// quantile returns the q-quantile by the nearest-rank method: the smallest value v for which at least the fraction q of
// all values is at most v. q is between 0 and 1. It returns zero if the histogram is empty.
func (h *Histogram) quantile(q float64) time.Duration { return h.ranked(Rank(q, h.count())) }

// ranked returns the value with the given rank. The smallest value has rank 1. For rank 0, ranked returns zero.
func (h *Histogram) ranked(rank int64) time.Duration {
	if rank <= h.zeros {
		return 0
	}
	n := h.count()
	// The upper bound of a bucket may be larger than the largest value in it.
	v := min(time.Duration(h.counts.ValueAtQuantile(100*float64(rank-h.zeros)/float64(n-h.zeros))), h.max)
	if v < Lowest {
		return 0
	}
	return v
}

// CountOver returns the number of values greater than d. This number is accurate to three digits.
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

// Latency returns the current distribution.
func (h *Histogram) Latency() result.Latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.latency()
	if over, ok := AllowedOver(l.Count); ok {
		l.P99Upper = new(h.ranked(l.Count - over).Seconds())
	}
	return l
}

// confidence is the confidence level of result.Latency.P99Upper, the upper bound of the p99.
const confidence = 0.99

// AllowedOver returns how many of n measured values may exceed a bound so that they still show, with 99% confidence,
// that at most 1% of all values exceed the bound: 0 of 459, 1 of 662, 2 of 838, as in MLPerf's LoadGen. ok is false if
// n is too small.
func AllowedOver(n int64) (over int64, ok bool) {
	b := distuv.Binomial{N: float64(n), P: 0.01}
	// Find the first count that is too high.
	over = int64(sort.Search(int(n/100)+1, func(k int) bool { return b.CDF(float64(k)) > 1-confidence })) - 1
	return over, over >= 0
}

// Take returns the distribution of the values since the last call of Take, and resets the histogram. It is for live
// displays.
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
