package result

import "time"

// TrendSchema is the version of a trend's JSON.
const TrendSchema = "stormglass.trend/v1"

// Trend is the history of a scenario's figures over runs.
type Trend struct {
	Schema   string        `json:"schema"` // stormglass.trend/v1
	Scenario string        `json:"scenario"`
	Runs     []TrendRun    `json:"runs"`    // sorted by start
	Figures  []TrendFigure `json:"figures"` // in the scenario's order
	Notes    []string      `json:"notes,omitempty"`
}

// TrendRun is one run of a history.
type TrendRun struct {
	Dir      string    `json:"dir"`
	Started  time.Time `json:"started"`
	Versions Versions  `json:"versions"`
}

// TrendFigure is the history of one figure.
type TrendFigure struct {
	Name    string        `json:"name"`
	Unit    string        `json:"unit"`
	Better  string        `json:"better"` // "lower" or "higher"
	Values  []*float64    `json:"values"` // one per run; null: no data
	Changes []TrendChange `json:"changes"`
}

// TrendChange is a change point: the figure changes from this run on.
type TrendChange struct {
	Run    int     `json:"run"` // index in the runs
	Before float64 `json:"before"`
	After  float64 `json:"after"` // before and after: means up to the neighbouring changes
	P      float64 `json:"p"`     // p-value of Welch's t-test between them
}
