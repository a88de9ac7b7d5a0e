package result

// Scheduling splits the scheduler's time in a phase by extension points and plugins:
// docs/reference/breakdown.md#the-scheduler.
type Scheduling struct {
	Phase    string           `json:"phase"`
	Attempts int64            `json:"attempts"`          // attempts to place a pod, with any result
	Missing  string           `json:"missing,omitempty"` // why the split is missing
	Points   []ExtensionPoint `json:"extensionPoints,omitempty"`
	Plugins  []PluginTime     `json:"plugins,omitempty"`
}

// ExtensionPoint is one extension point of the scheduling framework, with all its plugins together. The
// list is sorted by the sum, largest first.
type ExtensionPoint struct {
	Name    string   `json:"name"`  // as "Filter"
	Count   int64    `json:"count"` // runs
	Mean    float64  `json:"meanSeconds"`
	P99     *float64 `json:"p99Seconds,omitempty"` // absent if it is above the last bucket
	Seconds float64  `json:"seconds"`              // sum over all runs
}

// PluginTime is one plugin at one extension point. The scheduler measures plugins in a
// tenth of its cycles, at most 1,000 executions per second. The list is sorted by the sum, largest first.
type PluginTime struct {
	Plugin     string  `json:"plugin"`               // as "NodeResourcesFit"
	Point      string  `json:"extensionPoint"`       // as "Filter"
	Executions *int64  `json:"executions,omitempty"` // Filter and Score execute once per node; absent if not counted
	Measured   int64   `json:"measured"`             // executions that were measured
	Mean       float64 `json:"meanSeconds"`          // mean of the measured executions
	Seconds    float64 `json:"seconds"`              // estimate: the mean multiplied by executions, or by measured if executions is absent
}
