package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/stormglass/stormglass/loadgen/result"
)

// WithOpen returns the distribution with n additional values that are unknown but longer than all others, such as the
// durations of open requests. They count as clamped. If a quantile falls on one of them, the result contains the
// maximum of the known values instead.
func (h *Histogram) WithOpen(n int64) result.Latency {
	known := h.Latency()
	all := h.clone()
	all.RecordN(h.highest+1, n)
	l := all.Latency()
	l.Mean, l.Max = known.Mean, known.Max
	for _, q := range []*float64{&l.P50, &l.P90, &l.P95, &l.P99, &l.P999} {
		*q = min(*q, known.Max)
	}
	l.P99Upper = nil
	return l
}

// With returns the distribution of the histogram's values and the given values. It does not change the histogram.
func (h *Histogram) With(values []time.Duration) result.Latency {
	all := h.clone()
	for _, d := range values {
		all.Record(d)
	}
	return all.Latency()
}

func (h *Histogram) clone() *Histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &Histogram{highest: h.highest, zeros: h.zeros, sum: h.sum, max: h.max, clamped: h.clamped}
	if h.counts != nil {
		c.counts = hdrhistogram.New(int64(Lowest), int64(h.highest), digits)
		c.counts.Merge(h.counts)
	}
	return c
}
