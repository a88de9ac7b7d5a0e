package result

// AuditFile is the file in a run directory that summarizes the API server's audit log. It exists only if the run had an
// audit log.
const AuditFile = "audit.json"

// Breakdown splits the mean latency of the requests with the same phase, load, verb and resource
// ([breakdown](breakdown.md)).
type Breakdown struct {
	Phase    string `json:"phase"`
	Load     string `json:"load"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Variant: distinguishes operations with the same verb and resource, such as "rv=0"
	Variant    string   `json:"variant,omitempty"`
	Tenant     string   `json:"tenant,omitempty"`
	Count      int64    `json:"count"`                       // sent requests; all means are over these requests
	ClientMean float64  `json:"clientMeanSeconds"`           // mean latency
	ClientP99  float64  `json:"clientP99Seconds"`            // p99 of the latency; not split into parts
	ServerMean *float64 `json:"serverMeanSeconds,omitempty"` // mean time in the API server
	ServerP99  *float64 `json:"serverP99Seconds,omitempty"`  // p99 of the time in the API server; only with an audit log
	// ServerSource: source of the server times: "audit" (only the run's requests) or "metrics" (all clients' requests)
	ServerSource string `json:"serverSource,omitempty"`
	// OurShare: the run's requests as a fraction of all requests to the API servers
	OurShare        *float64        `json:"ourShare,omitempty"`
	Parts           []BreakdownPart `json:"parts"`                     // in the order of a request's path
	Unexplained     float64         `json:"unexplainedSeconds"`        // clientMeanSeconds minus the sum of parts
	UnexplainedNote string          `json:"unexplainedNote,omitempty"` // what unexplainedSeconds is known to contain
	Slow            *SlowRequests   `json:"slow,omitempty"`
	Warnings        []string        `json:"warnings,omitempty"` // why the breakdown is inexact or missing
}

// The parts of a Breakdown, in the order in which a request passes through them.
const (
	PartLag       = "lag"       // time from the intended start until the generator began to process the request
	PartConnect   = "connect"   // time to wait for a connection or a free stream
	PartWire      = "wire"      // service time outside the API server, such as on the network
	PartFilters   = "filters"   // time in authentication, authorization and other request filters
	PartFairness  = "fairness"  // time to wait in API Priority and Fairness
	PartAdmission = "admission" // time in admission, including webhooks
	PartEtcd      = "etcd"      // time in calls to etcd
	// PartAdmissionOrFairness: time in webhooks and in API Priority and Fairness, if it cannot be attributed to one of
	// them
	PartAdmissionOrFairness = "admissionOrFairness"
	PartCache               = "cache" // time to wait for the watch cache to be current
)

// BreakdownPart is the time that requests spend on average in one part of their path ([meaning](breakdown.md#parts)).
type BreakdownPart struct {
	// Name: "lag", "connect", "wire", "filters", "fairness", "admission", "admissionOrFairness", "etcd" or "cache"
	Name    string   `json:"name"`
	Seconds float64  `json:"meanSeconds"`           // lower bound of the mean time
	Most    *float64 `json:"mostSeconds,omitempty"` // upper bound of the mean time, if above meanSeconds
	// Of: which requests the mean covers: "our requests" (the run's), or all clients' requests with the same "verb and
	// resource", "resource" or "operation", or to the same "server"
	Of string `json:"of"`
	// Spans: mean time according to the spans of traced requests
	Spans  *float64 `json:"spansMeanSeconds,omitempty"`
	Source string   `json:"source"` // metric from which the time was computed, and the formula
	Note   string   `json:"note,omitempty"`
}

// SlowRequests summarizes requests over 500 ms, which the API server annotates in its audit log.
type SlowRequests struct {
	Count  int64              `json:"count"`                      // slow requests
	Mean   float64            `json:"meanSeconds"`                // mean time in the API server
	Layers map[string]float64 `json:"layerMeanSeconds,omitempty"` // mean time by layer (annotation apiserver.latency.k8s.io/NAME); layers overlap
}
