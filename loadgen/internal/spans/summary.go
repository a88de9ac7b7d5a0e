package spans

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
)

// mostSlowest is the maximum number of traces whose spans are in a result.
const mostSlowest = 20

// Result summarizes the kept traces of a run.
func (x Index) Result(all []Trace) *result.Traces {
	r := &result.Traces{
		Sampled: x.Sampled, Requests: x.Requests, Kept: len(all), Spans: x.Spans, Dropped: map[string]int64{}, Names: Summarize(all), Slowest: []result.Trace{},
	}
	for reason, n := range map[string]int64{
		"spans of requests that the run does not know": x.Unmatched, "spans above the memory for traces": x.Full, "spans of traces with too many spans": x.Excess,
		"spans without a valid ID": x.Invalid, "export requests without the token": x.Refused,
	} {
		if n > 0 {
			r.Dropped[reason] = n
		}
	}
	best := map[[2]string]*Trace{} // by load and phase
	for i := range all {
		t := &all[i]
		if !t.Tree().Complete() || t.Lost > 0 {
			r.Incomplete++
		}
		key := [2]string{t.Load, t.Phase}
		if b := best[key]; b == nil || t.Duration() > b.Duration() {
			best[key] = t
		}
	}
	slowest := slices.SortedFunc(maps.Values(best), func(a, b *Trace) int {
		return cmp.Or(cmp.Compare(b.Duration(), a.Duration()), cmp.Compare(a.Load, b.Load), cmp.Compare(a.Phase, b.Phase))
	})
	for _, t := range slowest[:min(len(slowest), mostSlowest)] {
		r.Slowest = append(r.Slowest, t.Result())
	}
	return r
}

// Result returns the trace with its spans in the order of the tree.
func (t *Trace) Result() result.Trace {
	tree := t.Tree()
	start, _ := tree.Extent()
	r := result.Trace{
		ID: t.Trace.String(), Load: t.Load, Phase: t.Phase, Verb: t.Verb, Resource: t.Resource, Start: t.Due, Seconds: seconds(t.Duration()), Status: t.Status, Failure: t.Failure,
		Spans: []result.TraceSpan{},
	}
	for depth, n := range tree.All() {
		s := result.TraceSpan{
			Depth: depth, Process: n.Process, Name: n.Name, Start: seconds(n.Start - start), Seconds: seconds(n.Duration()), Self: seconds(n.Self), Critical: seconds(n.Critical), Failed: n.Failed,
		}
		for _, e := range n.Events {
			s.Events = append(s.Events, result.TraceEvent{At: seconds(e.At - start), Name: e.Name})
		}
		r.Spans = append(r.Spans, s)
	}
	return r
}

// Summarize returns one row for each verb, resource, process and name of span. The rows of a verb and resource are sorted
// by Critical, the largest first.
func Summarize(all []Trace) []result.SpanName {
	type key struct{ verb, resource, process, name string }
	type sum struct {
		self     []int64
		critical int64
		last     int // the trace in which the name was seen last, from 1
		traces   int
	}
	sums := map[key]*sum{}
	total := map[key]int64{} // by verb and resource
	for i := range all {
		t := &all[i]
		total[key{verb: t.Verb, resource: t.Resource}] += t.Duration()
		for _, n := range t.Tree().All() {
			k := key{t.Verb, t.Resource, n.Process, n.Name}
			s := sums[k]
			if s == nil {
				s = &sum{}
				sums[k] = s
			}
			s.self = append(s.self, n.Self)
			s.critical += n.Critical
			if s.last != i+1 {
				s.last, s.traces = i+1, s.traces+1
			}
		}
	}
	rows := make([]result.SpanName, 0, len(sums))
	for _, k := range slices.SortedFunc(maps.Keys(sums), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.verb, b.verb), cmp.Compare(a.resource, b.resource), cmp.Compare(sums[b].critical, sums[a].critical), cmp.Compare(a.name, b.name), cmp.Compare(a.process, b.process))
	}) {
		s := sums[k]
		slices.Sort(s.self)
		rows = append(rows, result.SpanName{
			Verb: k.verb, Resource: k.resource, Process: k.process, Name: k.name, Count: len(s.self), Traces: s.traces,
			P50: seconds(quantile(s.self, 0.5)), P99: seconds(quantile(s.self, 0.99)), Critical: seconds(s.critical),
			Share: float64(s.critical) / float64(max(total[key{verb: k.verb, resource: k.resource}], 1)),
		})
	}
	return rows
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// quantile returns the smallest value that is at least as large as the fraction q of the sorted values.
func quantile(sorted []int64, q float64) int64 {
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
