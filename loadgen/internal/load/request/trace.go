package request

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
)

// trace is the part of a flight for its distributed trace.
type trace struct {
	sampled bool
	trace   spans.TraceID
	span    spans.ID
	first   time.Duration // when the header of the response arrived; 0: not yet
}

// sample decides whether to trace the flight's first request. If so, it adds the header traceparent to the request.
func (f *flight) sample(t *spans.Tracer) {
	f.traced = trace{}
	if f.traced.trace, f.traced.span, f.traced.sampled = t.Sample(); f.traced.sampled {
		f.Template = f.Template.With("traceparent", spans.Parent(f.traced.trace, f.traced.span))
	}
}

// trace passes a sampled request that has ended to the tracer.
func (e *engine) trace(f *flight, o load.Outcome, end time.Duration) {
	at := func(d time.Duration) int64 {
		if d == 0 {
			return 0
		}
		return e.start.Add(d).UnixNano()
	}
	kind := e.kinds[f.Kind]
	r := spans.Request{
		Trace: f.traced.trace, ID: f.traced.span, Load: e.name, Verb: kind.Verb, Resource: kind.Resource,
		Due: e.start.Add(f.intended).UnixNano(), Sent: at(f.sent), First: at(f.traced.first), Last: e.start.Add(end).UnixNano(), Status: f.status,
	}
	if f.status == 0 {
		r.Failure = o.String()
	}
	e.tracer.Ended(r, e.start.Add(end))
}
