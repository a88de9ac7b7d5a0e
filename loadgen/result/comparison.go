package result

import "time"

// Files of the directory of a comparison; each variant's run is in a directory
// of its name beside them.
const (
	ComparisonFile     = "comparison.json"
	ComparisonHTMLFile = "comparison.html"
)

// ComparisonSchema is the version of comparison.json.
const ComparisonSchema = "stormglass.comparison/v1"

// Comparison is comparison.json: the variants of one scenario side by side.
type Comparison struct {
	Schema      string    `json:"schema"`                // stormglass.comparison/v1
	Scenario    string    `json:"scenario"`              // the scenario's name
	Description string    `json:"description,omitempty"` // the scenario's
	Started     time.Time `json:"started"`               // before the first variant
	Ended       time.Time `json:"ended,omitzero"`        // after the last; zero: it has not come to its end
	// ExitCode is the worst of the variants': 4 before 2, 1, 3 and 0.
	ExitCode int       `json:"exitCode"`
	Variants []Variant `json:"variants"` // in the scenario's order, those that did not run too
	Rows     []Row     `json:"rows"`     // what the scenario compares
}

// Variant is one run of a comparison.
type Variant struct {
	Name        string   `json:"name"`                  // which is that of its directory
	Description string   `json:"description,omitempty"` // in the scenario
	Set         []string `json:"set,omitempty"`         // its fields, as path=value
	Verdict     Verdict  `json:"verdict"`               // no data where it did not run
	ExitCode    int      `json:"exitCode"`              // of its run
	Reasons     []string `json:"reasons,omitempty"`     // why it is not a pass
	// NotRun says why it did not run.
	NotRun string `json:"notRun,omitempty"`
	// Left names what it made in a user's cluster and could not remove, as in run.json.
	Left string `json:"left,omitempty"`
}

// Row is one figure in all variants.
type Row struct {
	Name      string  `json:"name"`      // unique in the scenario
	Objective string  `json:"objective"` // the built-in objective, or "expr"
	Unit      string  `json:"unit"`      // of the values, as a gate's
	Better    string  `json:"better"`    // "lower" or "higher"
	Values    []Value `json:"values"`    // one for each variant, in their order
}

// Value is a figure in one variant.
type Value struct {
	Value   *float64 `json:"value"`             // nil: no data
	AtLeast bool     `json:"atLeast,omitempty"` // the true value is not below Value
	// Ratio is Value to the first variant's. Nil of the first itself, and where one
	// of the two is missing or only a least value, or the first is zero.
	Ratio  *float64 `json:"ratio,omitempty"`
	Detail string   `json:"detail,omitempty"` // what it is made of, or why there is none
}
