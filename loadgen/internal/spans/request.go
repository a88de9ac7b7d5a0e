package spans

import "strconv"

// Request is a traced request, as its client saw it.
type Request struct {
	Trace TraceID `json:"traceId"`
	ID    ID      `json:"spanId"` // ID of the client's span, the parent of the API server's span; zero if Client is set
	// Load is the load that sent the request. If no load sent it, Load is empty, and Client is the program that sent it,
	// such as kube-scheduler. The times are then from the API server's span. Phase is the phase in which the request was
	// due; empty means before the first phase.
	Load   string `json:"load,omitempty"`
	Client string `json:"client,omitempty"`
	Phase  string `json:"phase"`
	// Verb and Resource are as in the results of the load, such as create and configmaps. If Client is set, Verb is the
	// HTTP method or LIST, such as POST for the resource pods/binding.
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Due is the time at which the request was to be sent, and Sent the time at which the generator began to send it.
	// First is the time of the first byte of the response; zero if there was no response. Last is the time of the last
	// byte, or of the failure. All times are nanoseconds since 1970.
	Due   int64 `json:"dueUnixNano"`
	Sent  int64 `json:"sentUnixNano"`
	First int64 `json:"firstByteUnixNano,omitempty"`
	Last  int64 `json:"lastByteUnixNano"`
	// Status is the HTTP status of the response. Failure is the kind of failure, such as "timeout"; empty if the client
	// read the whole response.
	Status  int    `json:"status,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// Failed reports whether the client did not read a whole response, or whether its status was 429 or 5xx.
func (r *Request) Failed() bool { return r.Failure != "" || r.Status == 429 || r.Status >= 500 }

// Duration returns the time from Due to Last in nanoseconds. It is never negative.
func (r *Request) Duration() int64 { return max(r.Last-r.Due, 0) }

// ofRun reports whether the request is part of the run. Requests of other clients before the first phase are part of
// starting the control plane.
func (r *Request) ofRun() bool { return r.Client == "" || r.Phase != "" }

func (r *Request) group() groupKey { return groupKey{r.Load, r.Client, r.Verb, r.Resource, r.Phase} }

// Trace is a kept trace.
type Trace struct {
	Request
	Spans []Span `json:"-"` // spans of the components; they are in SpansFile, not in the index
	// Why lists the reasons why the Keeper kept the trace: Slow, Sampled, Unsuccessful, Life.
	Why []string `json:"why"`
	// Lost is the number of spans that the Keeper dropped because the trace had too many, or because the memory was full.
	Lost int `json:"lostSpans,omitempty"`
}

// Reasons why the Keeper keeps a trace. A group contains the requests of one load or other client, verb, resource and
// phase.
const (
	Slow         = "slow"    // one of the slowest requests of its group
	Sampled      = "sampled" // in a uniform random sample of its group
	Unsuccessful = "failed"  // one of the first failed requests of its group
	Life         = "pod"     // part of the life of a pod
)

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
