package spans

import "strconv"

// Client is the process name of the load generator's own spans.
const Client = "loadgen"

// Names of the load generator's spans and events.
const (
	spanDelay  = "delay in the generator"
	eventSent  = "request sent"
	eventFirst = "first byte of the response"
)

// Spans returns the client's spans: the request, from the time at which it was due to the last byte of the response, and
// as its child the delay until the generator began to send it. The rest of the request, outside the API server's span, is
// time for the connection, the network and TLS.
func (r *Request) Spans() []Span {
	end := max(r.Last, r.Sent, r.Due)
	request := Span{
		Trace: r.Trace, ID: r.ID, Process: Client, Name: r.Verb + " " + r.Resource, Client: true, Start: r.Due, End: end, Failed: r.Failed(),
		Attributes: []Attribute{{"stormglass.load", r.Load}, {"stormglass.phase", r.Phase}},
		Events:     []Event{{Name: eventSent, At: r.Sent}},
	}
	switch {
	case r.Failure != "":
		request.Attributes = append(request.Attributes, Attribute{"error.type", r.Failure})
	case r.Status != 0:
		request.Attributes = append(request.Attributes, Attribute{"http.response.status_code", strconv.Itoa(r.Status)})
	}
	if r.First != 0 {
		request.Events = append(request.Events, Event{Name: eventFirst, At: r.First})
	}
	if r.Sent <= r.Due {
		return []Span{request}
	}
	delay := Span{Trace: r.Trace, ID: r.ID, Parent: r.ID, Process: Client, Name: spanDelay, Start: r.Due, End: r.Sent}
	delay.ID[0] ^= 0xff // differs from the request's ID, and is the same in each call
	return []Span{request, delay}
}

// Tree returns the tree of the trace, with the client's spans.
func (t *Trace) Tree() *Tree { return NewTree(t.All()) }

// All returns the spans of the trace, with the client's spans if a load sent the request.
func (t *Trace) All() []Span {
	if t.ID == (ID{}) {
		return t.Spans
	}
	return append(t.Request.Spans(), t.Spans...)
}
