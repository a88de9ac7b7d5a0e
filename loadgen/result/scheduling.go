package result

// Scheduling splits the time that the scheduler used in a phase by extension points and plugins
// ([breakdown](breakdown.md#the-scheduler)). Both lists are sorted by seconds, largest first.
type Scheduling struct {
	Phase    string           `json:"phase"`
	Attempts int64            `json:"attempts"`          // attempts to place a pod, with any result
	Missing  string           `json:"missing,omitempty"` // why the split is missing
	Points   []ExtensionPoint `json:"extensionPoints,omitempty"`
	Plugins  []PluginTime     `json:"plugins,omitempty"`
}

// ExtensionPoint holds the times of one extension point of the scheduling framework, summed over its plugins.
type ExtensionPoint struct {
	Name    string   `json:"name"`                 // such as "Filter"
	Count   int64    `json:"count"`                // runs of the extension point
	Mean    float64  `json:"meanSeconds"`          // mean duration of a run
	P99     *float64 `json:"p99Seconds,omitempty"` // p99 of the duration; absent if above the last bucket of the histogram
	Seconds float64  `json:"seconds"`              // total duration of all runs
}

// PluginTime holds the time of one plugin at one extension point. The scheduler measures plugins in a tenth of its cycles,
// at most 1,000 executions per second.
type PluginTime struct {
	Plugin     string  `json:"plugin"`               // such as "NodeResourcesFit"
	Point      string  `json:"extensionPoint"`       // such as "Filter"
	Executions *int64  `json:"executions,omitempty"` // Filter and Score execute once per node
	Measured   int64   `json:"measured"`             // measured executions
	Mean       float64 `json:"meanSeconds"`          // mean duration of the measured executions
	Seconds    float64 `json:"seconds"`              // estimated total time
}
