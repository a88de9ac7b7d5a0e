package result

import "time"

// Files in the directory of a comparison. Its subdirectories hold the runs of the variants, and are named after them.
const (
	ComparisonFile     = "comparison.json"
	ComparisonHTMLFile = "comparison.html"
)

// ComparisonSchema is the version of comparison.json.
const ComparisonSchema = "stormglass.comparison/v1"

// Comparison is the content of comparison.json: the results of all variants of one scenario.
type Comparison struct {
	Schema      string    `json:"schema"`                // always stormglass.comparison/v1
	Scenario    string    `json:"scenario"`              // name of the scenario
	Description string    `json:"description,omitempty"` // description of the scenario
	Started     time.Time `json:"started"`               // start of the first variant
	Ended       time.Time `json:"ended,omitzero"`        // end of the last variant; absent: the comparison did not finish
	// ExitCode: the worst exit code of the variants; from worst to best: 4, 2, 1, 3, 0
	ExitCode int       `json:"exitCode"`
	Variants []Variant `json:"variants"` // variants in the scenario's order, including those that did not run
	Rows     []Row     `json:"rows"`     // values of the compared metrics
}

// Variant is one variant of the scenario, with the result of its run.
type Variant struct {
	Name        string   `json:"name"`                  // name of the variant and of its directory
	Description string   `json:"description,omitempty"` // description of the variant in the scenario
	Set         []string `json:"set,omitempty"`         // fields that the variant sets, as path=value
	Verdict     Verdict  `json:"verdict"`               // verdict of the variant's run; "no data" if it did not run
	ExitCode    int      `json:"exitCode"`              // exit code of the variant's run
	Reasons     []string `json:"reasons,omitempty"`     // why the run did not pass
	NotRun      string   `json:"notRun,omitempty"`      // why the variant did not run
	// Grown: spans that take more time in this variant than in the first one, if the runs have traces
	Grown []SpanGrowth `json:"grown,omitempty"`
	// Left: objects that the run could not remove from a user's cluster, as in run.json
	Left string `json:"left,omitempty"`
}

// Row holds the values of one compared metric in all variants.
type Row struct {
	Name      string  `json:"name"`      // name of the metric, unique in the scenario
	Objective string  `json:"objective"` // name of the built-in objective, or "expr"
	Unit      string  `json:"unit"`      // unit of the values, as in a gate
	Better    string  `json:"better"`    // better values: "lower" or "higher"
	Values    []Value `json:"values"`    // one value for each variant, in the order of variants
}

// Value is the value of a compared metric in one variant.
type Value struct {
	Value   *float64 `json:"value"`             // value of the metric; null: no data
	AtLeast bool     `json:"atLeast,omitempty"` // the value is a lower bound
	// Ratio: value divided by the first variant's value. Absent for the first variant, if either value is missing or a
	// lower bound, and if the first variant's value is zero
	Ratio  *float64 `json:"ratio,omitempty"`
	Detail string   `json:"detail,omitempty"` // how the value was computed, or why it is missing
}
