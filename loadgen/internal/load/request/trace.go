package request

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
)

// trace holds the distributed-tracing data of a flight (a request that was sent).
type trace struct {
	sampled bool
	trace   spans.TraceID
	span    spans.ID
	first   time.Duration // when the header of the first response arrived; 0 before
}

// sample decides whether to trace the flight's first request, and adds the header traceparent. If the request is sampled,
// its trace ID is also its Audit-ID, so that a user can find the trace of an entry in the audit log. Without a tracer,
// sample adds no header.
func (f *flight) sample(t *spans.Tracer) {
	f.traced = trace{}
	if t == nil {
		return
	}
	if f.traced.trace, f.traced.span, f.traced.sampled = t.Sample(); !f.traced.sampled {
		f.Template = f.Template.With("traceparent", spans.Unsampled)
		return
	}
	f.Template = f.Template.With("traceparent", spans.Parent(f.traced.trace, f.traced.span)).With("audit-id", f.traced.trace.String())
}

// trace passes a sampled request that has ended to the tracer. If the engine read a response late, it saw the header after
// the end of the request. trace then uses the end as the time of the first byte.
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
		Due: e.start.Add(f.intended).UnixNano(), Sent: at(f.sent), First: at(min(f.traced.first, end)), Last: e.start.Add(end).UnixNano(), Status: f.status,
	}
	if o < 0 { // also after the header of a response, for example if its body is truncated
		r.Failure = o.String()
	}
	e.tracer.Ended(r, e.start.Add(end))
}
