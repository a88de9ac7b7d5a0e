package spans

import (
	"cmp"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Thresholds of Grown: a span grew if it takes over 10% more time in b than in a, and if the difference is at least 1% of
// the requests' mean latency in b.
const (
	maxGrown    = 5
	minGrowth   = 0.1
	minOfLatest = 0.01
)

// Grown returns the spans that take more time on the critical path of a request in the runs b than in the runs a. It
// returns at most 5 spans, the largest growth first. It ignores runs without traces, and requests that the runs a did
// not send.
func Grown(a, b []*result.Traces) []result.SpanGrowth {
	before, sent := means(a)
	after, latency := means(b)
	var all []result.SpanGrowth
	for k, now := range after {
		if _, known := sent[k.requestKey]; !known {
			continue // the runs a sent no such requests
		}
		then := before[k]
		if grown := now - then; grown > minGrowth*then && grown >= minOfLatest*latency[k.requestKey] {
			all = append(all, result.SpanGrowth{Verb: k.verb, Resource: k.resource, Process: k.process, Name: k.name, A: then, B: now})
		}
	}
	slices.SortFunc(all, func(x, y result.SpanGrowth) int {
		return cmp.Or(cmp.Compare(y.B-y.A, x.B-x.A), cmp.Compare(x.Process, y.Process), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Verb+x.Resource, y.Verb+y.Resource))
	})
	return all[:min(len(all), maxGrown)]
}

// means returns the mean time of each span on the critical path of a request, and the mean latency of each kind of
// request. Both are means over all runs, in seconds.
func means(runs []*result.Traces) (critical map[nameKey]float64, latency map[requestKey]float64) {
	requests := map[requestKey]float64{}
	critical, latency = map[nameKey]float64{}, map[requestKey]float64{}
	for _, t := range runs {
		if t == nil {
			continue
		}
		seen := map[requestKey]bool{}
		for _, n := range t.Names {
			of := requestKey{n.Verb, n.Resource}
			if !seen[of] {
				seen[of] = true
				requests[of] += float64(n.Requests)
			}
			critical[nameKey{of, n.Process, n.Name}] += n.Critical * float64(n.Requests)
			latency[of] += n.Critical * float64(n.Requests) // the critical path is as long as the request
		}
	}
	for k := range critical {
		critical[k] /= max(requests[k.requestKey], 1)
	}
	for of := range latency {
		latency[of] /= max(requests[of], 1)
	}
	return critical, latency
}
