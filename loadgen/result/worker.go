package result

// Worker is one generator of a run that has several generators ([workers](workers.md)).
type Worker struct {
	Index int `json:"index"` // number of the worker
	// Name: host and process ID, such as "node-3/17"
	Name      string  `json:"name"`
	Sent      int64   `json:"sent"`                // sent requests
	Watches   int64   `json:"watches,omitempty"`   // watches open in the last phase of each load
	Nodes     int64   `json:"nodes,omitempty"`     // simulated nodes
	Delivered int64   `json:"delivered,omitempty"` // deliveries of measured writes to the worker's watches
	LagP99    float64 `json:"lagP99Seconds"`       // highest p99 of a load's lag
	// ClockOffset: last measured difference between the worker's and coordinator's clocks, without sign
	ClockOffset float64 `json:"clockOffsetSeconds"`
	// ClockUncertainty: maximum error of clockOffsetSeconds
	ClockUncertainty float64   `json:"clockUncertaintySeconds"`
	Generator        Generator `json:"generator"`
	Lost             string    `json:"lost,omitempty"` // why the coordinator lost or gave up the worker
}
