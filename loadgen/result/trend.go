package result

import "time"

// TrendSchema is the version of the JSON of a trend.
const TrendSchema = "stormglass.trend/v1"

// Trend holds the figures (compared metrics) of all runs of a scenario.
type Trend struct {
	Schema   string        `json:"schema"` // always stormglass.trend/v1
	Scenario string        `json:"scenario"`
	Runs     []TrendRun    `json:"runs"`    // runs, sorted by their start
	Figures  []TrendFigure `json:"figures"` // compared metrics, in the scenario's order
	Notes    []string      `json:"notes,omitempty"`
}

// TrendRun is one run of a trend.
type TrendRun struct {
	Dir      string    `json:"dir"` // run directory
	Started  time.Time `json:"started"`
	Versions Versions  `json:"versions"` // versions of the programs in the run
}

// TrendFigure holds the values of one figure in all runs of a trend.
type TrendFigure struct {
	Name   string     `json:"name"` // name of the compared metric
	Unit   string     `json:"unit"`
	Better string     `json:"better"` // "lower" or "higher"
	Values []*float64 `json:"values"` // one value per run; null: no data
	// Spikes: indexes in `runs` of outliers, which the search for changes omits
	Spikes  []int         `json:"spikes,omitempty"`
	Changes []TrendChange `json:"changes"`
}

// TrendChange is a change point: the first run of a series with a different mean.
type TrendChange struct {
	Run    int     `json:"run"`    // index of the run in `runs`
	Before float64 `json:"before"` // mean of the earlier runs since the previous change
	After  float64 `json:"after"`  // mean of the runs from this one to the next change
	P      float64 `json:"p"`      // p-value of Welch's t-test between the runs in `before` and `after`
}
