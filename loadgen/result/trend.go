package result

import "time"

// TrendSchema is the version of the JSON of a trend.
const TrendSchema = "stormglass.trend/v1"

// Trend is the history of a scenario's figures.
type Trend struct {
	Schema   string        `json:"schema"` // stormglass.trend/v1
	Scenario string        `json:"scenario"`
	Runs     []TrendRun    `json:"runs"`    // sorted by start
	Figures  []TrendFigure `json:"figures"` // in the scenario's order
	Notes    []string      `json:"notes,omitempty"`
}

// TrendRun is one run of a history.
type TrendRun struct {
	Dir      string    `json:"dir"` // run directory
	Started  time.Time `json:"started"`
	Versions Versions  `json:"versions"` // of the programs in the run
}

// TrendFigure is the history of one figure.
type TrendFigure struct {
	Name    string        `json:"name"` // name of the figure
	Unit    string        `json:"unit"`
	Better  string        `json:"better"` // "lower" or "higher"
	Values  []*float64    `json:"values"` // one per run; null: no data
	Changes []TrendChange `json:"changes"`
}

// TrendChange is a change point: the figure changes from this run on.
type TrendChange struct {
	Run int `json:"run"` // index in runs
	// Before: mean of the runs since the previous change (or the first run)
	Before float64 `json:"before"`
	After  float64 `json:"after"` // mean of the runs from this one up to the next change (or the last run)
	P      float64 `json:"p"`     // p-value of Welch's t-test between before and after
}
