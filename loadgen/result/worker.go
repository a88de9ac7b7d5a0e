package result

// Worker is one of several generators of a run.
type Worker struct {
	Index int `json:"index"`
	// Name: host and process ID, as "node-3/17"
	Name      string `json:"name"`
	Sent      int64  `json:"sent"`                // requests
	Watches   int64  `json:"watches,omitempty"`   // watches open in the last phase of each load
	Nodes     int64  `json:"nodes,omitempty"`     // simulated nodes
	Delivered int64  `json:"delivered,omitempty"` // measured writes to its watches
	// LagP99: p99 of the worst load, from the intended start of a request until the worker took it up
	LagP99 float64 `json:"lagP99Seconds"`
	// ClockOffset: absolute difference between its clock and the coordinator's, as last measured
	ClockOffset float64 `json:"clockOffsetSeconds"`
	// ClockUncertainty: maximum error of clockOffsetSeconds
	ClockUncertainty float64   `json:"clockUncertaintySeconds"`
	Generator        Generator `json:"generator"`
	// Lost: why it was lost or given up
	Lost string `json:"lost,omitempty"`
}
