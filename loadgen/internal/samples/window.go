package samples

import (
	"math/bits"
	"strings"
	"sync/atomic"
	"time"
)

// Span is the length of the time range that a Window treats as recent.
const Span = 5 * time.Second

// Window sums the results of all loads over the last Span and since the first slot. The zero value is empty. A Window
// is not safe for concurrent use.
type Window struct {
	slots         []summary // slots in the last Span, oldest first
	recent, total Counts
	took          [buckets]int64 // number of requests by duration in the last Span
}

// Canceled is the outcome of requests that were canceled because the run ended.
const Canceled = "canceled"

type summary struct {
	until time.Time
	Counts
	took []Bucket
}

// Counts contains numbers of requests.
type Counts struct {
	Ended     int64 // all requests that ended, except those canceled because the run ended
	Throttled int64 // responses with status 429
	// Errors is the number of failed requests that count as errors of the server: status 5xx, no complete response,
	// or no response in time.
	Errors int64
}

func (c *Counts) add(o Counts, sign int64) {
	c.Ended += sign * o.Ended
	c.Throttled += sign * o.Throttled
	c.Errors += sign * o.Errors
}

// Add adds a slot from Recorder.Follow. Call it in the order of the slots.
func (w *Window) Add(s Slot) {
	n := summary{until: s.Until()}
	for _, r := range s.Requests {
		n.Ended += r.Succeeded
		for outcome, count := range r.Failed {
			n.count(outcome, count)
		}
		n.took = append(n.took, r.Took...)
	}
	w.slots = append(w.slots, n)
	w.sum(n, 1)
	w.total.add(n.Counts, 1)
	gone := 0
	for gone < len(w.slots) && !w.slots[gone].until.After(n.until.Add(-Span)) {
		w.sum(w.slots[gone], -1)
		gone++
	}
	w.slots = append(w.slots[:0], w.slots[gone:]...)
}

func (w *Window) sum(n summary, sign int64) {
	w.recent.add(n.Counts, sign)
	for _, b := range n.took {
		w.took[b.At] += sign * b.N
	}
}

func (c *Counts) count(outcome string, n int64) {
	switch {
	case outcome == Canceled:
		return
	case outcome == "429":
		c.Throttled += n
	case outcome == "other", len(outcome) == 3 && outcome[0] < '5' && outcome[0] >= '0':
	case strings.TrimSpace(outcome) != "": // 5xx, and the other outcomes of load.Outcome
		c.Errors += n
	}
	c.Ended += n
}

// Recent returns the numbers of requests that ended in the last Span.
func (w *Window) Recent() Counts { return w.recent }

// Total returns the numbers of requests that ended since the first slot.
func (w *Window) Total() Counts { return w.total }

// Over returns the number of requests in the last Span that took longer than d, not counting the generator's own delay.
// It may leave out requests that took at most 6% longer than d.
func (w *Window) Over(d time.Duration) (n int64) {
	for i := bucketOf(d) + 1; i < buckets; i++ {
		n += w.took[i]
	}
	return n
}

// Longest returns a duration that at most n requests in the last Span exceeded. It may be up to 6% too high. It returns
// 0 if the last Span has at most n requests.
func (w *Window) Longest(n int64) time.Duration {
	for i := buckets - 1; i >= 0; i-- {
		if n -= w.took[i]; n < 0 {
			return edge(i)
		}
	}
	return 0
}

// Buckets of durations: one for durations below 2^shortest ns, and perOctave buckets for each doubling of the duration.
// The last bucket also contains all longer durations.
const (
	shortest  = 10 // 2^10 ns, about a microsecond
	perOctave = 16
	octaves   = 32 // doublings of the duration, up to 73 minutes
	buckets   = 1 + octaves*perOctave
)

// Bucket is the number of requests in one bucket of durations.
type Bucket struct {
	At int   `json:"at"` // index of the bucket
	N  int64 `json:"n"`
}

func bucketOf(d time.Duration) int {
	if d < 1<<shortest {
		return 0
	}
	power := bits.Len64(uint64(d)) - 1
	part := int(uint64(d)>>(power-4)) - perOctave
	return min(1+(power-shortest)*perOctave+part, buckets-1)
}

// edge returns the upper bound of a bucket.
func edge(i int) time.Duration {
	if i == 0 {
		return 1 << shortest
	}
	octave, part := (i-1)/perOctave, (i-1)%perOctave
	return time.Duration(perOctave+part+1) << (shortest + octave - 4)
}

// histogram counts durations. It is safe for concurrent use. A nil histogram counts nothing.
type histogram [buckets]atomic.Int64

func (h *histogram) add(d time.Duration) {
	if h != nil {
		h[bucketOf(d)].Add(1)
	}
}

func (h *histogram) take() (all []Bucket) {
	if h == nil {
		return nil
	}
	for i := range h {
		if n := h[i].Swap(0); n > 0 {
			all = append(all, Bucket{i, n})
		}
	}
	return all
}
