package generator

import (
	"runtime/metrics"
	"time"
)

// runQueue reads how long goroutines waited to be run, of which the runtime
// measures every eighth time.
type runQueue struct {
	sample []metrics.Sample
	counts []uint64 // at the last look
}

func newRunQueue() *runQueue {
	q := &runQueue{sample: []metrics.Sample{{Name: "/sched/latencies:seconds"}}}
	q.longest()
	return q
}

// longest is the longest wait since the last look: the lower edge of its bucket.
func (q *runQueue) longest() time.Duration {
	metrics.Read(q.sample)
	if q.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := q.sample[0].Value.Float64Histogram()
	if q.counts == nil {
		q.counts = append(q.counts, h.Counts...)
		return 0
	}
	var longest float64
	for i, n := range h.Counts {
		if n > q.counts[i] {
			longest = max(h.Buckets[i], 0)
		}
		q.counts[i] = n
	}
	return time.Duration(longest * float64(time.Second))
}
