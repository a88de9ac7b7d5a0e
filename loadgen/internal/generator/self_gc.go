package generator

import (
	"math"
	"runtime/metrics"
	"slices"
	"time"
)

// gcSeconds returns the CPU time of garbage collection since the process started. The runtime updates this estimate
// at the end of each collection. The result does not include collection on CPUs that were otherwise idle.
func gcSeconds() float64 {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(s)
	for _, one := range s {
		if one.Value.Kind() != metrics.KindFloat64 {
			return 0
		}
	}
	return max(s[0].Value.Float64()-s[1].Value.Float64(), 0)
}

// pauses is the distribution of the garbage collector's stop-the-world pauses. counts contains the number of pauses
// in each bucket, and edges the bounds of the buckets in seconds.
type pauses struct {
	counts []uint64
	edges  []float64
}

func gcPauses() pauses {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return pauses{}
	}
	h := s[0].Value.Float64Histogram()
	return pauses{slices.Clone(h.Counts), h.Buckets}
}

// since returns the pauses since an earlier reading. It changes the counts of p.
func (p pauses) since(before pauses) pauses {
	for i := range min(len(p.counts), len(before.counts)) {
		p.counts[i] -= before.counts[i]
	}
	return p
}

// quantile returns the upper bound of the bucket that contains the q-quantile, or its lower bound if the upper one is
// infinite. It returns 0 if there are no pauses.
func (p pauses) quantile(q float64) float64 {
	var total, below uint64
	for _, n := range p.counts {
		total += n
	}
	if total == 0 {
		return 0
	}
	for i, n := range p.counts {
		if below += n; float64(below) >= q*float64(total) {
			if edge := p.edges[i+1]; !math.IsInf(edge, 1) {
				return edge
			}
			return p.edges[i]
		}
	}
	return 0
}

// runQueue reads how long goroutines waited for a CPU. The runtime measures every eighth wait.
type runQueue struct {
	sample []metrics.Sample
	counts []uint64 // counts of the runtime's histogram at the last call of longest
}

func newRunQueue() *runQueue {
	q := &runQueue{sample: []metrics.Sample{{Name: "/sched/latencies:seconds"}}}
	q.longest()
	return q
}

// longest returns the lower bound of the longest wait since the previous call, as the runtime's histogram gives it.
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
