package result

// AuditFile is the file in a run directory that summarizes the API server's audit log.
// It exists only if the log was on.
const AuditFile = "audit.json"

// Breakdown splits the mean latency of one load's requests of one verb and resource in
// a phase: docs/reference/breakdown.md.
type Breakdown struct {
	Phase           string          `json:"phase"`
	Load            string          `json:"load"`
	Verb            string          `json:"verb"`
	Resource        string          `json:"resource"`
	Variant         string          `json:"variant,omitempty"`
	Tenant          string          `json:"tenant,omitempty"`
	Count           int64           `json:"count"`                       // requests sent; means cover these
	ClientMean      float64         `json:"clientMeanSeconds"`           // the sum of parts and unexplained
	ClientP99       float64         `json:"clientP99Seconds"`            // p99 of the latency; it is not split
	ServerMean      *float64        `json:"serverMeanSeconds,omitempty"` // mean time from receipt of the request to the end of the answer
	ServerP99       *float64        `json:"serverP99Seconds,omitempty"`  // p99 of the same time, from the audit log only
	ServerSource    string          `json:"serverSource,omitempty"`      // "audit" (only our requests) or "metrics" (the requests of all clients)
	OurShare        *float64        `json:"ourShare,omitempty"`          // our requests divided by all requests that the API servers counted
	Parts           []BreakdownPart `json:"parts"`                       // in the order in which a request passes through them
	Unexplained     float64         `json:"unexplainedSeconds"`          // the mean minus all parts
	UnexplainedNote string          `json:"unexplainedNote,omitempty"`   // what unexplainedSeconds is known to contain
	Slow            *SlowRequests   `json:"slow,omitempty"`              // our requests over 500 ms, from the audit log
	Warnings        []string        `json:"warnings,omitempty"`          // why the split is inexact or missing
}

// The parts of a Breakdown, in the order in which a request passes through them.
const (
	PartLag       = "lag"       // from the intended start until the generator began to handle the request
	PartConnect   = "connect"   // waiting for a connection or a free stream
	PartWire      = "wire"      // service time outside the API server
	PartFilters   = "filters"   // authentication, authorization and the like
	PartFairness  = "fairness"  // waiting in priority and fairness
	PartAdmission = "admission" // admission, webhooks included
	PartEtcd      = "etcd"      // calls to etcd
	// PartAdmissionOrFairness: webhooks and priority and fairness together, if they cannot be separated
	PartAdmissionOrFairness = "admissionOrFairness"
	PartCache               = "cache" // waiting for the watch cache to be current
)

// BreakdownPart is one part of a mean latency.
type BreakdownPart struct {
	// Name: "lag", "connect", "wire", "filters", "fairness", "admission", "admissionOrFairness", "etcd" or "cache"
	Name    string  `json:"name"`
	Seconds float64 `json:"meanSeconds"` // the time that certainly belongs to the part; never negative
	// Most: the upper bound of the part, if it is larger; the difference is included in unexplainedSeconds
	Most *float64 `json:"mostSeconds,omitempty"`
	// Of: which requests are averaged: "our requests", or all clients' requests of this "verb and
	// resource", "resource", "operation" or "server"
	Of     string `json:"of"`
	Source string `json:"source"` // metric and formula
	Note   string `json:"note,omitempty"`
}

// SlowRequests summarizes requests over 500 ms, which the API server annotates in its audit log.
type SlowRequests struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"meanSeconds"` // the API server's time
	// Layers: mean time by annotation apiserver.latency.k8s.io/NAME; layers overlap
	Layers map[string]float64 `json:"layerMeanSeconds,omitempty"`
}
