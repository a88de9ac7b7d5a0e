package latency

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Counts is the serializable content of a Histogram. Merged adds Counts up.
type Counts struct {
	Highest time.Duration `json:"highest"`
	Zeros   int64         `json:"zeros,omitempty"`
	Sum     float64       `json:"sum,omitempty"` // nanoseconds
	Max     time.Duration `json:"max,omitempty"`
	Clamped int64         `json:"clamped,omitempty"`
	// Buckets contains pairs of numbers: how many empty buckets to skip, and the count of the bucket after them.
	Buckets []int64 `json:"buckets,omitempty"`
}

// Counts returns the current content of the histogram.
func (h *Histogram) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := Counts{Highest: h.highest, Zeros: h.zeros, Sum: h.sum, Max: h.max, Clamped: h.clamped}
	if h.counts == nil {
		return c
	}
	empty := int64(0)
	for _, n := range h.counts.Export().Counts {
		if n == 0 {
			empty++
			continue
		}
		c.Buckets = append(c.Buckets, empty, n)
		empty = 0
	}
	return c
}

// Merged returns a histogram with the sum of all Counts, which must have the same range. It ignores Counts that are
// zero values.
func Merged(all ...Counts) (*Histogram, error) {
	var h *Histogram
	for _, c := range all {
		if c.Highest == 0 && c.Zeros == 0 && len(c.Buckets) == 0 {
			continue
		}
		if h == nil {
			h = New(c.Highest)
		}
		if err := h.add(c); err != nil {
			return nil, err
		}
	}
	if h == nil {
		h = New(0)
	}
	return h, nil
}

// add adds c to the histogram. It is not safe for concurrent use.
func (h *Histogram) add(c Counts) error {
	if c.Highest != h.highest {
		return fmt.Errorf("histogram counts up to %v cannot be added to counts up to %v", c.Highest, h.highest)
	}
	if c.Zeros < 0 || c.Clamped < 0 || len(c.Buckets)%2 != 0 {
		return errors.New("invalid histogram counts")
	}
	if len(c.Buckets) > 0 {
		if err := h.addBuckets(c.Buckets); err != nil {
			return err
		}
	}
	h.zeros += c.Zeros
	h.sum += c.Sum
	h.max = max(h.max, c.Max)
	h.clamped += c.Clamped
	return nil
}

func (h *Histogram) addBuckets(pairs []int64) error {
	if h.counts == nil {
		h.counts = hdrhistogram.New(int64(Lowest), int64(h.highest), digits)
	}
	more := hdrhistogram.New(int64(Lowest), int64(h.highest), digits).Export()
	at := int64(-1)
	for i := 0; i < len(pairs); i += 2 {
		skipped, n := pairs[i], pairs[i+1]
		if skipped < 0 || n <= 0 || skipped >= int64(len(more.Counts)) {
			return errors.New("invalid histogram counts")
		}
		if at += skipped + 1; at >= int64(len(more.Counts)) {
			return errors.New("counts past the histogram's range")
		}
		more.Counts[at] = n
	}
	h.counts.Merge(hdrhistogram.Import(more))
	return nil
}
