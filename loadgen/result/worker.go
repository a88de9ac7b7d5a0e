package result

// Worker is one of several generators of a run.
type Worker struct {
	Index int `json:"index"`
	// Name: host and process ID, such as "node-3/17"
	Name      string `json:"name"`
	Sent      int64  `json:"sent"`                // requests
	Watches   int64  `json:"watches,omitempty"`   // watches open in the last phase of each load
	Nodes     int64  `json:"nodes,omitempty"`     // simulated nodes
	Delivered int64  `json:"delivered,omitempty"` // deliveries of measured writes to the worker's watches
	// LagP99: p99 of the time from the intended start of a request until the worker began to handle it, of the load with the
	// highest p99
	LagP99 float64 `json:"lagP99Seconds"`
	// ClockOffset: absolute difference between the clocks of the worker and the coordinator, as last measured
	ClockOffset float64 `json:"clockOffsetSeconds"`
	// ClockUncertainty: maximum error of clockOffsetSeconds
	ClockUncertainty float64   `json:"clockUncertaintySeconds"`
	Generator        Generator `json:"generator"`
	// Lost: why the worker was lost or given up
	Lost string `json:"lost,omitempty"`
}
