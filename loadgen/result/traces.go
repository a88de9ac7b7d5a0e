package result

// Traces is a summary of the distributed traces of a run.
type Traces struct {
	Sampled  float64          `json:"sampled"`           // sampling rate, 0 to 1
	Requests int64            `json:"requests"`          // traced requests
	Kept     int              `json:"kept"`              // traces in the directory traces/
	Spans    int64            `json:"spans"`             // received spans
	Dropped  map[string]int64 `json:"dropped,omitempty"` // dropped spans, requests or traces, by reason
	// Incomplete: traced requests whose spans are missing or contradict each other
	Incomplete int64       `json:"incomplete"`
	Names      []SpanName  `json:"names"` // at most 200 summaries
	Parts      []SpanParts `json:"parts"`
	// Slowest: the slowest trace of each load, verb, resource and phase, and of each other client and phase
	Slowest []Trace   `json:"slowest"`
	Pods    []PodLife `json:"pods,omitempty"` // a sample, longest first
}

// PodLife is the life of one pod: the writes that created and changed the pod, from its Deployment to its
// EndpointSlice.
type PodLife struct {
	Pod     string     `json:"pod"`           // NAMESPACE/NAME
	Start   int64      `json:"startUnixNano"` // start of the first write
	Seconds float64    `json:"seconds"`       // time from the start of the first write to the end of the last
	Writes  []PodWrite `json:"writes"`        // sorted by their start
}

// PodWrite is a request that created or changed a pod or an object that the pod depends on.
type PodWrite struct {
	What    string  `json:"what"`         // verb and object of the request, such as "POST pods/binding"
	Client  string  `json:"client"`       // program or load that sent the request, such as kube-scheduler
	Start   float64 `json:"startSeconds"` // start of the request, after the start of the pod's life
	Seconds float64 `json:"seconds"`      // latency of the request
	Trace   string  `json:"traceId"`
}

// SpanName is a summary of the spans with one name of one process, in all complete traces of a verb and resource.
type SpanName struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Process  string `json:"process"`
	Name     string `json:"name"`     // name of the spans
	Count    int64  `json:"count"`    // number of spans
	Requests int64  `json:"requests"` // complete traces
	// P50: median self time: the time in which none of the span's children ran
	P50      float64 `json:"selfP50Seconds"`
	P99      float64 `json:"selfP99Seconds"`  // p99 of the self time
	Critical float64 `json:"criticalSeconds"` // mean time of the spans on a request's critical path
	Share    float64 `json:"share"`           // criticalSeconds as a fraction of the requests' mean latency
}

// SpanParts is the mean time of parts of a request, measured by the spans of a load's requests.
type SpanParts struct {
	Phase    string     `json:"phase"`
	Load     string     `json:"load"`
	Verb     string     `json:"verb"`
	Resource string     `json:"resource"`
	Requests int64      `json:"requests"` // complete traces
	Parts    []SpanPart `json:"parts"`
}

// SpanPart is the mean time of the spans that belong to one part of a request.
type SpanPart struct {
	// Name: "fairness", "admission" (only webhooks, on the critical path) or "etcd"
	Name    string  `json:"name"`
	Seconds float64 `json:"meanSeconds"` // mean time in the part
	Error   float64 `json:"standardErrorSeconds"`
}

// SpanGrowth is a span that takes more of a request's time in the second of two runs than in the first.
type SpanGrowth struct {
	Verb     string  `json:"verb"`
	Resource string  `json:"resource"`
	Process  string  `json:"process"`
	Name     string  `json:"name"`     // name of the span
	A        float64 `json:"aSeconds"` // mean time of the span on a request's critical path, in the first run
	B        float64 `json:"bSeconds"` // mean time of the span on this path, in the second run
}

// CauseTrace is the recorded trace that shows a cause best.
type CauseTrace struct {
	ID       string  `json:"traceId"`         // ID of the trace, for `loadgen trace`
	Request  string  `json:"request"`         // verb and resource of the request
	Seconds  float64 `json:"seconds"`         // latency of the request
	Span     string  `json:"span"`            // process and name of the span that shows the cause
	Critical float64 `json:"criticalSeconds"` // time of the span on the critical path
}

// Trace is one traced request and its spans.
type Trace struct {
	ID       string      `json:"traceId"`
	Load     string      `json:"load,omitempty"`
	Client   string      `json:"client,omitempty"` // program that sent the request, if no load did
	Phase    string      `json:"phase"`
	Verb     string      `json:"verb"`
	Resource string      `json:"resource"`
	Complete bool        `json:"complete"`      // false: spans are missing or contradict each other
	Start    int64       `json:"startUnixNano"` // when the request was due
	Seconds  float64     `json:"seconds"`       // latency of the request
	Status   int         `json:"status,omitempty"`
	Failure  string      `json:"failure,omitempty"` // kind of failure, if the response was not complete
	Spans    []TraceSpan `json:"spans"`             // each span precedes its children
}

// TraceSpan is a span of a Trace.
type TraceSpan struct {
	Depth    int     `json:"depth"` // number of ancestors
	Process  string  `json:"process"`
	Name     string  `json:"name"`             // name of the span
	Detail   string  `json:"detail,omitempty"` // what the span worked on: a webhook, a key in etcd or a URL
	Start    float64 `json:"startSeconds"`     // time after the start of the trace
	Seconds  float64 `json:"seconds"`          // length of the span
	Self     float64 `json:"selfSeconds"`      // time in which none of the span's children ran
	Critical float64 `json:"criticalSeconds"`  // time of the span on the critical path
	// Path: parts of the span on the critical path; their sum is criticalSeconds
	Path   []TracePart  `json:"path,omitempty"`
	Failed bool         `json:"failed,omitempty"`
	Events []TraceEvent `json:"events,omitempty"`
}

// TraceEvent is an event in a span.
type TraceEvent struct {
	At   float64 `json:"atSeconds"` // time of the event, after the start of the trace
	Name string  `json:"name"`      // name of the event
}

// TracePart is a part of a trace, in seconds after its start.
type TracePart struct {
	From float64 `json:"fromSeconds"` // start of the part
	To   float64 `json:"toSeconds"`   // end of the part
}
