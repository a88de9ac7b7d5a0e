package result

// Worker is one of several generators of a run.
type Worker struct {
	Index int `json:"index"`
	// Name: its host and process, as "node-3/17"
	Name      string `json:"name"`
	Sent      int64  `json:"sent"`                // requests
	Watches   int64  `json:"watches,omitempty"`   // open in the last phase of each load
	Nodes     int64  `json:"nodes,omitempty"`     // simulated
	Delivered int64  `json:"delivered,omitempty"` // measured writes to its watches
	// LagP99: of its requests, from the intended start until they were taken up, the worst load's
	LagP99 float64 `json:"lagP99Seconds"`
	// ClockOffset: how far its clock was from the coordinator's, before or behind, as measured last
	ClockOffset float64 `json:"clockOffsetSeconds"`
	// ClockUncertainty: by how much clockOffsetSeconds may be wrong
	ClockUncertainty float64   `json:"clockUncertaintySeconds"`
	Generator        Generator `json:"generator"`
	// Lost: why it was lost, or given up
	Lost string `json:"lost,omitempty"`
}
