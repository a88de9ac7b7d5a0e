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
	Schema      string    `json:"schema"`                // stormglass.comparison/v1
	Scenario    string    `json:"scenario"`              // name of the scenario
	Description string    `json:"description,omitempty"` // description of the scenario
	Started     time.Time `json:"started"`               // time before the first variant
	Ended       time.Time `json:"ended,omitzero"`        // time after the last variant; zero: the comparison did not finish
	// ExitCode: the worst exit code of the variants; from worst to best: 4, 2, 1, 3, 0
	ExitCode int       `json:"exitCode"`
	Variants []Variant `json:"variants"` // variants in the scenario's order, including those that did not run
	Rows     []Row     `json:"rows"`     // the figures that the scenario compares
}

// Variant is one variant of the scenario, with the result of its run.
type Variant struct {
	Name        string   `json:"name"`                  // name of the variant and of its directory
	Description string   `json:"description,omitempty"` // description in the scenario
	Set         []string `json:"set,omitempty"`         // fields that the variant sets, as path=value
	Verdict     Verdict  `json:"verdict"`               // "no data" if the variant did not run
	ExitCode    int      `json:"exitCode"`              // exit code of the variant's run
	Reasons     []string `json:"reasons,omitempty"`     // why the run did not pass
	// NotRun: why the variant did not run
	NotRun string `json:"notRun,omitempty"`
	// Grown: spans that take more time than in the first variant, if the runs have traces
	Grown []SpanGrowth `json:"grown,omitempty"`
	// Left: objects that the run could not remove from a user's cluster, as in run.json
	Left string `json:"left,omitempty"`
}

// Row holds the values of one figure in all variants.
type Row struct {
	Name      string  `json:"name"`      // name, unique in the scenario
	Objective string  `json:"objective"` // the built-in objective, or "expr"
	Unit      string  `json:"unit"`      // unit of the values, as in a gate
	Better    string  `json:"better"`    // "lower" or "higher"
	Values    []Value `json:"values"`    // one value for each variant, in the order of variants
}

// Value is the value of a figure in one variant.
type Value struct {
	Value   *float64 `json:"value"`             // value; null: no data
	AtLeast bool     `json:"atLeast,omitempty"` // Value is a lower bound
	// Ratio: Value divided by the first variant's value. Null for the first variant, if either value is missing or
	// a lower bound, and if the first value is zero
	Ratio  *float64 `json:"ratio,omitempty"`
	Detail string   `json:"detail,omitempty"` // how the value was computed, or why it is missing
}
