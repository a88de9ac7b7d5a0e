package result

// Worker is one generator of a run that has several generators ([workers](workers.md)).
type Worker struct {
	Index     int     `json:"index"`               // number of the worker
	Name      string  `json:"name"`                // host and process ID of the worker, such as "node-3/17"
	Sent      int64   `json:"sent"`                // sent requests
	Watches   int64   `json:"watches,omitempty"`   // watches open in the last phase of each load
	Nodes     int64   `json:"nodes,omitempty"`     // simulated nodes
	Delivered int64   `json:"delivered,omitempty"` // deliveries of measured writes to the worker's watches
	LagP99    float64 `json:"lagP99Seconds"`       // highest p99 of the lag of the worker's loads
	// ClockOffset: last measured difference between the clocks of the worker and the coordinator
	ClockOffset      float64   `json:"clockOffsetSeconds"`
	ClockUncertainty float64   `json:"clockUncertaintySeconds"` // maximum error of clockOffsetSeconds
	Generator        Generator `json:"generator"`
	Lost             string    `json:"lost,omitempty"` // why the coordinator lost or gave up the worker
}
