package spans

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Maximum numbers of traces of loads, and of other clients, whose spans a result contains. A result also contains the
// traces of one pod's life.
const (
	maxOfLoads  = 40
	maxOfOthers = 10
)

// maxRows is the maximum number of rows of span names in a result. Index.Names has all rows.
const maxRows = 200

// Result summarizes the kept traces of a run.
func (x Index) Result(all []Trace) *result.Traces {
	r := &result.Traces{
		Sampled: x.Sampled, Requests: x.Requests, Kept: len(all), Spans: x.Spans, Incomplete: x.Incomplete, Dropped: map[string]int64{}, Names: x.Names[:min(len(x.Names), maxRows)], Parts: x.Parts, Pods: x.Pods,
	}
	for reason, n := range map[string]int64{
		"spans of watches, unfinished requests or no request": x.Unmatched, "spans above the memory limit": x.Full, "spans of traces with too many spans": x.Excess,
		"spans without a valid ID": x.Invalid, "refused export requests": x.Refused, "requests near the memory limit": x.Skipped, "traces above the size limit of traces/": x.Omitted,
	} {
		if n > 0 {
			r.Dropped[reason] = n
		}
	}
	best := map[groupKey]*Trace{} // by load, verb, resource and phase, or by client and phase
	for i := range all {
		t := &all[i]
		key := groupKey{client: t.Client, phase: t.Phase}
		if t.Client == "" {
			key = groupKey{load: t.Load, verb: t.Verb, resource: t.Resource, phase: t.Phase}
		}
		if b := best[key]; t.ofRun() && (b == nil || t.Duration() > b.Duration()) {
			best[key] = t
		}
	}
	slowest := slices.SortedFunc(maps.Values(best), func(a, b *Trace) int {
		return cmp.Or(cmp.Compare(b.Duration(), a.Duration()), bytes.Compare(a.Trace[:], b.Trace[:]))
	})
	r.Slowest = []result.Trace{}
	for _, senders := range []struct {
		others bool
		left   int
	}{{false, maxOfLoads}, {true, maxOfOthers}} {
		for _, t := range slowest {
			if (t.Client != "") == senders.others && senders.left > 0 {
				senders.left--
				r.Slowest = append(r.Slowest, t.Result())
			}
		}
	}
	addLife(r, all)
	return r
}

// addLife adds the traces of the longest pod life to r.Slowest, so that the report can link each write to its trace.
func addLife(r *result.Traces, all []Trace) {
	if len(r.Pods) == 0 {
		return
	}
	missing := map[string]bool{}
	for _, w := range r.Pods[0].Writes {
		missing[w.Trace] = true
	}
	for _, x := range r.Slowest {
		delete(missing, x.ID)
	}
	for i := range all {
		if id := all[i].Trace.String(); missing[id] {
			delete(missing, id)
			r.Slowest = append(r.Slowest, all[i].Result())
		}
	}
}

// Result returns the trace with its spans in the order of the tree.
func (t *Trace) Result() result.Trace {
	tree := t.Tree()
	start, _ := tree.Extent()
	r := result.Trace{
		ID: t.Trace.String(), Load: t.Load, Client: t.Client, Phase: t.Phase, Verb: t.Verb, Resource: t.Resource, Start: t.Due, Seconds: seconds(t.Duration()), Status: t.Status, Failure: t.Failure,
		Complete: tree.Complete() && t.Lost == 0 && len(t.Spans) > 0, Spans: []result.TraceSpan{},
	}
	webhook := "" // name in the parent span
	for depth, n := range tree.All() {
		s := result.TraceSpan{
			Depth: depth, Process: n.Process, Name: n.Name, Detail: detailOf(&n.Span, webhook), Start: seconds(n.Start - start), Seconds: seconds(n.Duration()), Self: seconds(n.Self), Critical: seconds(n.Critical), Failed: n.Failed,
		}
		webhook = n.Attribute("webhook")
		for _, p := range slices.Backward(n.Path) {
			s.Path = append(s.Path, result.TracePart{From: seconds(p.Start - start), To: seconds(p.End - start)})
		}
		for _, e := range n.Events {
			s.Events = append(s.Events, result.TraceEvent{At: seconds(e.At - start), Name: e.Name})
		}
		r.Spans = append(r.Spans, s)
	}
	return r
}

// detailOf returns what a span worked on, such as a key in etcd, or "" if its attributes do not say. An API server's span
// for a webhook call names only an address, so detailOf returns `webhook`, the name in the parent of this span.
func detailOf(s *Span, webhook string) string {
	if s.Client && webhook != "" {
		return webhook
	}
	for _, key := range []string{"webhook", "key", "compare_first_key", "range_begin", attributeTarget, "url.full"} {
		if value := s.Attribute(key); value != "" {
			return value
		}
	}
	return ""
}
