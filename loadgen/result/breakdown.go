package result

// AuditFile is the summary of the API server's audit log in a run directory,
// if the log was on.
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
	Count           int64           `json:"count"`                       // requests sent, which means are over
	ClientMean      float64         `json:"clientMeanSeconds"`           // the sum of parts and unexplained
	ClientP99       float64         `json:"clientP99Seconds"`            // not split
	ServerMean      *float64        `json:"serverMeanSeconds,omitempty"` // from receipt to the end of the answer
	ServerP99       *float64        `json:"serverP99Seconds,omitempty"`  // from the audit log only
	ServerSource    string          `json:"serverSource,omitempty"`      // "audit" (our requests alone) or "metrics" (all clients')
	OurShare        *float64        `json:"ourShare,omitempty"`          // of the API servers' count
	Parts           []BreakdownPart `json:"parts"`                       // in a request's order
	Unexplained     float64         `json:"unexplainedSeconds"`          // mean less all parts
	UnexplainedNote string          `json:"unexplainedNote,omitempty"`   // known contents
	Slow            *SlowRequests   `json:"slow,omitempty"`              // our requests over 500 ms, from the audit log
	Warnings        []string        `json:"warnings,omitempty"`          // why the split is inexact or missing
}

// The parts of a Breakdown, in the order of a request's way.
const (
	PartLag       = "lag"       // intended start until taken up by the generator
	PartConnect   = "connect"   // waiting for a connection or a free stream
	PartWire      = "wire"      // service time that the API server did not see
	PartFilters   = "filters"   // authentication, authorization and the like
	PartFairness  = "fairness"  // waiting in priority and fairness
	PartAdmission = "admission" // admission, webhooks included
	PartEtcd      = "etcd"      // calls to etcd
	// PartAdmissionOrFairness: webhooks and priority and fairness together, where they cannot be told apart
	PartAdmissionOrFairness = "admissionOrFairness"
	PartCache               = "cache" // waiting for the watch cache to be current
)

// BreakdownPart is one part of a mean.
type BreakdownPart struct {
	// Name: "lag", "connect", "wire", "filters", "fairness", "admission", "admissionOrFairness", "etcd" or "cache"
	Name    string  `json:"name"`
	Seconds float64 `json:"meanSeconds"` // what is certain; never negative
	// Most: what it can be at most, if that is more; the difference is in the unexplained
	Most *float64 `json:"mostSeconds,omitempty"`
	// Of: the requests averaged: "our requests", or all clients' of this "verb and
	// resource", "resource", "operation" or "server"
	Of     string `json:"of"`
	Source string `json:"source"` // metric and formula
	Note   string `json:"note,omitempty"`
}

// SlowRequests are those over 500 ms, which the API server annotates in its audit log.
type SlowRequests struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"meanSeconds"` // the API server's time
	// Layers: by annotation apiserver.latency.k8s.io/NAME; they overlap.
	Layers map[string]float64 `json:"layerMeanSeconds,omitempty"`
}
