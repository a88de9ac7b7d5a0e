package result

// AuditFile is the summary of the API server's audit log in a run directory,
// if the log was on.
const AuditFile = "audit.json"

// Breakdown tells where the mean latency of one load's requests of one verb
// and resource went in a phase. Means add up, quantiles do not: the mean is
// split, the p99 stands beside it whole. docs/reference/breakdown.md says what each part is.
type Breakdown struct {
	Phase    string `json:"phase"`             // the name of the phase
	Load     string `json:"load"`              // the load's name in the scenario
	Verb     string `json:"verb"`              // as in Requests
	Resource string `json:"resource"`          // as in Requests
	Variant  string `json:"variant,omitempty"` // as in Requests
	Tenant   string `json:"tenant,omitempty"`  // as in Requests
	Count    int64  `json:"count"`             // sent requests, which all means are over
	// ClientMean is the sum of Parts and Unexplained.
	ClientMean float64 `json:"clientMeanSeconds"`
	ClientP99  float64 `json:"clientP99Seconds"` // from the same histogram; not split
	// ServerMean is the API server's own time from receiving a request to the
	// end of its answer. Nil where it is not known.
	ServerMean *float64 `json:"serverMeanSeconds,omitempty"`
	// ServerP99 is there only if the audit log tells it.
	ServerP99 *float64 `json:"serverP99Seconds,omitempty"`
	// ServerSource is where ServerMean is from: "audit" (our requests alone)
	// or "metrics" (those of all clients).
	ServerSource string `json:"serverSource,omitempty"`
	// OurShare is the fraction of all requests of this verb and resource, as
	// the API servers count them, that were ours. Nil where there are no metrics.
	OurShare *float64 `json:"ourShare,omitempty"`
	// Parts in the order of a request's way. One that comes from a difference
	// or from others' requests may be negative: it is shown as it is.
	Parts []BreakdownPart `json:"parts"`
	// Unexplained is ClientMean less all parts: time that nothing accounts for.
	Unexplained float64 `json:"unexplainedSeconds"`
	// UnexplainedNote says what is known to be in it.
	UnexplainedNote string `json:"unexplainedNote,omitempty"`
	// Slow are those of our requests that took the API server over 500 ms,
	// with its own account of each. Nil without the audit log, or if there were none.
	Slow *SlowRequests `json:"slow,omitempty"`
	// Warnings say in a line each what makes the split less than exact, or
	// why there is none.
	Warnings []string `json:"warnings,omitempty"`
}

// The parts of a Breakdown.
const (
	PartLag       = "lag"       // intended start until taken up by the generator
	PartConnect   = "connect"   // waiting for a connection or a free stream
	PartWire      = "wire"      // service time that the API server did not see
	PartFilters   = "filters"   // authentication, authorization and the like
	PartFairness  = "fairness"  // waiting in priority and fairness
	PartAdmission = "admission" // admission, webhooks included
	PartEtcd      = "etcd"      // calls to etcd
	PartCache     = "cache"     // waiting for the watch cache to be current
)

// PartNames lists all parts in the order of a request's way.
func PartNames() []string {
	return []string{PartLag, PartConnect, PartWire, PartFilters, PartFairness, PartAdmission, PartEtcd, PartCache}
}

// BreakdownPart is one part of a mean.
type BreakdownPart struct {
	// Name: "lag", "connect", "wire", "filters", "fairness", "admission",
	// "etcd", "cache".
	Name    string  `json:"name"`
	Seconds float64 `json:"meanSeconds"` // per request
	// Of names the requests averaged: "our requests", or the requests
	// of all clients of this "verb and resource", of this "resource", of this
	// "operation" on any resource, or of the "server".
	Of     string `json:"of"`
	Source string `json:"source"`         // the histogram or the metric, and the formula
	Note   string `json:"note,omitempty"` // what to know before believing it
}

// SlowRequests are requests for which the API server gave an account in its
// audit log, as it does past 500 ms.
type SlowRequests struct {
	Count int64   `json:"count"`       // how many
	Mean  float64 `json:"meanSeconds"` // of the API server's time
	// Layers by their audit annotations, apiserver.latency.k8s.io/NAME, in
	// seconds per slow request. They overlap: writing is in serialization,
	// webhooks are in no other.
	Layers map[string]float64 `json:"layerMeanSeconds,omitempty"`
}
