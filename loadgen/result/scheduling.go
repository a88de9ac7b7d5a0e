package result

// Scheduling splits the time that the scheduler used in a phase by extension points and plugins
// ([breakdown](breakdown.md#the-scheduler)). Both lists are sorted by seconds, largest first.
type Scheduling struct {
	Phase    string           `json:"phase"`
	Attempts int64            `json:"attempts"`          // number of attempts to place a pod, with any result
	Missing  string           `json:"missing,omitempty"` // why the split is missing
	Points   []ExtensionPoint `json:"extensionPoints,omitempty"`
	Plugins  []PluginTime     `json:"plugins,omitempty"`
}

// ExtensionPoint holds the times of one extension point of the scheduling framework, summed over its plugins.
type ExtensionPoint struct {
	Name    string   `json:"name"`                 // name of the extension point, such as "Filter"
	Count   int64    `json:"count"`                // number of times that the extension point ran
	Mean    float64  `json:"meanSeconds"`          // mean duration of one run of the extension point
	P99     *float64 `json:"p99Seconds,omitempty"` // p99 of the duration; absent if above the last bucket of the histogram
	Seconds float64  `json:"seconds"`              // total duration of all runs of the extension point
}

// PluginTime holds the time of one plugin at one extension point. The scheduler measures plugins in a tenth of its cycles,
// at most 1,000 executions per second.
type PluginTime struct {
	Plugin     string  `json:"plugin"`               // name of the plugin, such as "NodeResourcesFit"
	Point      string  `json:"extensionPoint"`       // name of the extension point, such as "Filter"
	Executions *int64  `json:"executions,omitempty"` // number of executions; Filter and Score execute once per node
	Measured   int64   `json:"measured"`             // number of measured executions
	Mean       float64 `json:"meanSeconds"`          // mean duration of the measured executions
	// Seconds: estimated total time: the mean multiplied by executions, or by measured if executions is absent
	Seconds float64 `json:"seconds"`
}
