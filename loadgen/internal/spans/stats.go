package spans

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/stormglass/stormglass/loadgen/result"
)

// stats sums up the spans of all complete traces. Its memory is bounded: it has at most maxNames names, maxNames
// requests and maxParts parts.
type stats struct {
	names    map[nameKey]*nameStats
	requests map[requestKey]*totals // totals of the requests, by verb and resource
	parts    map[groupKey]*parts
}

type requestKey struct{ verb, resource string }

type nameKey struct {
	requestKey
	process, name string
}

// nameStats sums up the spans with one name.
type nameStats struct {
	self     *hdrhistogram.Histogram // distribution of the self time, in nanoseconds
	critical int64
}

type totals struct{ requests, duration int64 }

// parts sums up the self times of spans by part of the latency, for a load's requests of one verb, resource and phase.
type parts struct {
	requests int64
	sum      [partCount]float64 // total self time by part, in seconds
	squares  [partCount]float64
}

const (
	maxNames = 800 // maximum number of names; each takes 25 KB
	maxParts = 1000

	shortest, longest, digits = 1000, 300e9, 2 // range in nanoseconds and number of digits of nameStats.self
)

// These are parts of the latency that metrics measure, too (docs/reference/breakdown.md).
const (
	partFairness = iota
	partAdmission
	partEtcd
	partCount
)

var partNames = [partCount]string{result.PartFairness, result.PartAdmission, result.PartEtcd}

func newStats() stats {
	return stats{map[nameKey]*nameStats{}, map[requestKey]*totals{}, map[groupKey]*parts{}}
}

// add adds a trace. It returns false if the trace is not complete. It ignores requests of other clients before the first
// phase, such as requests of a control plane that starts.
func (s *stats) add(h *held) bool {
	tree := h.tree()
	if !tree.Complete() || h.lost > 0 || len(h.spans) == 0 {
		return false
	}
	r, most := h.request, maxNames
	if !r.ofRun() {
		return true
	}
	if r.Client != "" {
		most /= 2 // the other names are for loads
	}
	of := requestKey{r.Verb, r.Resource}
	total := s.requests[of]
	if total == nil {
		if len(s.requests) >= most {
			return true
		}
		total = &totals{}
		s.requests[of] = total
	}
	total.requests++
	total.duration += r.Duration()
	p := s.part(r.group())
	var self [partCount]int64
	for _, n := range tree.All() {
		if part, took := partOf(n); took > 0 {
			self[part] += took
		}
		key := nameKey{of, n.Process, n.Name}
		name := s.names[key]
		if name == nil {
			if len(s.names) >= most {
				continue
			}
			name = &nameStats{self: hdrhistogram.New(shortest, longest, digits)}
			s.names[key] = name
		}
		_ = name.self.RecordValue(min(n.Self, longest)) // cannot fail: the value is in range
		name.critical += n.Critical
	}
	p.requests++
	for part, ns := range self {
		p.sum[part] += seconds(ns)
		p.squares[part] += seconds(ns) * seconds(ns)
	}
	return true
}

// part returns the sums of a group. If there are too many groups, or if no load sent the requests, the returned sums do
// not appear in partRows.
func (s *stats) part(of groupKey) *parts {
	p := s.parts[of]
	if p == nil {
		p = &parts{}
		if of.client == "" && len(s.parts) < maxParts {
			s.parts[of] = p
		}
	}
	return p
}

// partOf returns the part of the latency to which a span belongs, and the time that it adds to this part, in
// nanoseconds. The time is 0 if the span belongs to no part. The names of spans are from k8s.io/apiserver 1.37 and etcd
// 3.7. Validating webhooks are called in parallel, so only their time on the critical path counts. API servers also
// call conversion webhooks and other API servers by HTTP, which is not part of admission.
func partOf(n *Node) (part int, took int64) {
	switch {
	case strings.HasPrefix(n.Process, "etcd"), strings.HasPrefix(n.Name, "etcdserverpb."):
		return partEtcd, n.Self
	case n.Name == "priorityandfairness":
		return partFairness, n.Self
	case n.Name == "Call validating webhook", n.Name == "Call mutating webhook":
		return partAdmission, n.waitedFor()
	}
	return 0, 0
}

// rows returns a row for each verb, resource, process and span name. The verb and resource with the most time in total come
// first, and in each the name with the most time on the critical path.
func (s *stats) rows() []result.SpanName {
	keys := slices.SortedFunc(maps.Keys(s.names), func(a, b nameKey) int {
		return cmp.Or(cmp.Compare(s.requests[b.requestKey].duration, s.requests[a.requestKey].duration), cmp.Compare(a.verb, b.verb), cmp.Compare(a.resource, b.resource), cmp.Compare(s.names[b].critical, s.names[a].critical), cmp.Compare(a.name, b.name), cmp.Compare(a.process, b.process))
	})
	rows := make([]result.SpanName, 0, len(keys))
	for _, k := range keys {
		n, total := s.names[k], s.requests[k.requestKey]
		rows = append(rows, result.SpanName{
			Verb: k.verb, Resource: k.resource, Process: k.process, Name: k.name, Count: n.self.TotalCount(), Requests: total.requests,
			P50: seconds(n.self.ValueAtQuantile(50)), P99: seconds(n.self.ValueAtQuantile(99)),
			Critical: seconds(n.critical) / float64(total.requests), Share: float64(n.critical) / float64(max(total.duration, 1)),
		})
	}
	return rows
}

// partRows returns the mean parts of each load, verb, resource and phase.
func (s *stats) partRows() []result.SpanParts {
	keys := slices.SortedFunc(maps.Keys(s.parts), func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.load, b.load), cmp.Compare(a.verb, b.verb), cmp.Compare(a.resource, b.resource))
	})
	rows := make([]result.SpanParts, 0, len(keys))
	for _, k := range keys {
		p := s.parts[k]
		row := result.SpanParts{Phase: k.phase, Load: k.load, Verb: k.verb, Resource: k.resource, Requests: p.requests}
		n := float64(p.requests)
		for part, name := range partNames {
			mean := p.sum[part] / n
			variance := max(p.squares[part]/n-mean*mean, 0)
			row.Parts = append(row.Parts, result.SpanPart{Name: name, Seconds: mean, Error: math.Sqrt(variance / n)})
		}
		rows = append(rows, row)
	}
	return rows
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
