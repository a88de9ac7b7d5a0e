package result

// Scheduling is the scheduler's time in a phase, by extension points and plugins:
// docs/reference/breakdown.md#the-scheduler.
type Scheduling struct {
	Phase    string           `json:"phase"`
	Attempts int64            `json:"attempts"`          // to place a pod, of any result
	Missing  string           `json:"missing,omitempty"` // why there is no split
	Points   []ExtensionPoint `json:"extensionPoints,omitempty"`
	Plugins  []PluginTime     `json:"plugins,omitempty"`
}

// ExtensionPoint is one of the scheduling framework's: all its plugins together. Largest
// sums are first.
type ExtensionPoint struct {
	Name    string   `json:"name"`  // as "Filter"
	Count   int64    `json:"count"` // runs
	Mean    float64  `json:"meanSeconds"`
	P99     *float64 `json:"p99Seconds,omitempty"` // none where it is over the last bucket
	Seconds float64  `json:"seconds"`              // of all runs
}

// PluginTime is one plugin at one extension point. The scheduler measures plugins in a
// tenth of its cycles, at most 1,000 executions a second. Largest sums are first.
type PluginTime struct {
	Plugin     string  `json:"plugin"`               // as "NodeResourcesFit"
	Point      string  `json:"extensionPoint"`       // as "Filter"
	Executions *int64  `json:"executions,omitempty"` // Filter and Score have one for each node; none: not counted
	Measured   int64   `json:"measured"`             // executions that were measured
	Mean       float64 `json:"meanSeconds"`          // of those
	Seconds    float64 `json:"seconds"`              // estimate: the mean times executions; without those, of what was measured
}
