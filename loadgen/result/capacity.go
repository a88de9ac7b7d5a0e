package result

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Files in the directory of a capacity search. Its subdirectories, such as trial-01, hold the runs of the trials.
const (
	CapacityFile     = "capacity.json"
	CapacityHTMLFile = "capacity.html"
)

// CapacitySchema is the version of capacity.json.
const CapacitySchema = "stormglass.capacity/v1"

// Capacity is the content of capacity.json: the result of a search for the highest load at which a scenario's gates pass.
type Capacity struct {
	Schema    string            `json:"schema"` // always stormglass.capacity/v1
	Scenario  string            `json:"scenario"`
	Field     string            `json:"field"` // field of the scenario that the search varies
	Unit      string            `json:"unit"`  // "per second" or "count"
	From      float64           `json:"from"`  // lowest load of the search range
	To        float64           `json:"to"`    // highest load of the search range
	Width     float64           `json:"width"` // relative width of the capacity's interval at which the search ends; 0.15 is 15%
	Started   time.Time         `json:"started"`
	Ended     time.Time         `json:"ended,omitzero"` // absent if the command did not finish
	Overrides []string          `json:"overrides,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// AbortOn: values of `--abort-on`; a trial is bad if one of these conditions ends it
	AbortOn  []string `json:"abortOn,omitempty"`
	InTurns  bool     `json:"inTurns,omitempty"` // the trials alternated with the trials of another search
	Versions Versions `json:"versions,omitzero"` // versions in the first trial
	Host     Host     `json:"host,omitzero"`
	// Answer: "found", "above the range", "below the range", "the generator ended first", "trials could not be judged",
	// "unconfirmed" or "unfinished" ([meanings](capacity.md#search))
	Answer    string     `json:"answer"`
	ExitCode  int        `json:"exitCode"`  // 0: found, 4: the environment failed, 3: any other answer
	Low       *float64   `json:"low"`       // lower end of the 90% interval of the capacity
	Median    *float64   `json:"median"`    // estimate of the capacity
	High      *float64   `json:"high"`      // upper end of the 90% interval of the capacity
	Held      *float64   `json:"held"`      // highest load of a good trial (its gates passed)
	Confirmed *Confirmed `json:"confirmed"` // null: not yet confirmed
	GaveWay   []GaveWay  `json:"gaveWay"`   // why trials were bad; reasons at the lowest bad load come first
	// Bottleneck: resource that limited the most bad trials; null: no resource was near its limit
	Bottleneck  *Bottleneck `json:"bottleneck"`
	Notes       []string    `json:"notes,omitempty"`
	Trials      []Trial     `json:"trials"`
	Digest      string      `json:"digest,omitempty"`      // searches with the same digest are comparable
	PlaneDigest string      `json:"planeDigest,omitempty"` // digest of the control plane, faults, seed and variant
	Build       string      `json:"build,omitempty"`       // SHA-256 of the controlplane binary
	// EndedAt: loads at which a trial could not run to its end; if another trial at the same load ends like this, that
	// trial is bad
	EndedAt []float64 `json:"endedAt,omitempty"`
}

// GaveWay is a reason why trials were bad, such as a failed gate, with the number of these trials.
type GaveWay struct {
	Gate   string `json:"gate"`
	Trials int    `json:"trials"`
}

// Use is a resource, such as a component's processors, and the fraction of it that was in use.
type Use struct {
	Resource  string  `json:"resource"`            // name of the resource
	What      string  `json:"what"`                // the resource in words
	Component string  `json:"component,omitempty"` // component that the resource belongs to
	Share     float64 `json:"share"`               // fraction of the resource that was in use; 1: fully used
}

// Confirmed holds the load that the search repeated at its end, the number of trials at this load, and how many of
// these trials were good.
type Confirmed struct {
	Load   float64 `json:"load"`
	Good   int     `json:"good"`
	Trials int     `json:"trials"`
}

// Bottleneck is a resource and the number of bad trials that it limited.
type Bottleneck struct {
	Use
	Trials int `json:"trials"`
	// FullWhenLight: the resource was used as much in the good trial with the lowest load
	FullWhenLight bool `json:"fullWhenLight,omitempty"`
}

// Trial is one run of a search, at one load.
type Trial struct {
	Number int     `json:"number"` // from 1
	Dir    string  `json:"dir"`    // run directory, relative to the search's directory
	Load   float64 `json:"load"`
	// Outcome: "good", "bad", "invalid" (the generator was the limit) or "no data"
	Outcome string   `json:"outcome"`
	Why     string   `json:"why,omitempty"`     // reason for the outcome
	Machine []string `json:"machine,omitempty"` // why the machine was busy during the trial, by phase
	Gates   []Gate   `json:"gates"`
	// Offered: rate at which requests of all loads were due in the busiest phase (the phase with the most requests)
	Offered  float64            `json:"offeredPerSecond"`
	Achieved float64            `json:"achievedPerSecond"` // part of offeredPerSecond that succeeded in time
	P50      float64            `json:"p50Seconds"`        // median latency of the slowest load in the busiest phase
	P99      float64            `json:"p99Seconds"`        // p99 latency of the same load
	Cores    map[string]float64 `json:"cores"`             // processors that each component used in the busiest phase
	Uses     []Use              `json:"uses,omitempty"`    // the most used resources in the busiest phase
}

// Check returns an error if c is not a valid result of a search.
func (c *Capacity) Check() error {
	if c.Field == "" || c.From <= 0 || c.To <= c.From {
		return errors.New("it has no field or no valid range")
	}
	for i, t := range c.Trials {
		if t.Number != i+1 || t.Load <= 0 {
			return fmt.Errorf("trials[%d]: wrong number or no load", i)
		}
		if !slices.Contains([]string{"good", "bad", "invalid", "no data"}, t.Outcome) {
			return fmt.Errorf("trials[%d].outcome is %q, which is unknown", i, t.Outcome)
		}
	}
	known := 0
	for _, v := range []*float64{c.Low, c.Median, c.High} {
		if v != nil {
			known++
		}
	}
	if known != 0 && known != 3 || known == 0 && c.Answer == "found" {
		return errors.New("its interval is incomplete")
	}
	return CheckLabels(c.Labels)
}

// MayBeLower reports whether the capacity may lie below the interval that the search found.
func (c Capacity) MayBeLower() bool {
	return c.Answer == "unconfirmed" || c.Answer == "below the range"
}

// MayBeHigher reports whether the capacity may lie above the highest load at which the gates passed.
func (c Capacity) MayBeHigher() bool {
	return c.Held != nil && (c.Answer == "above the range" || c.Answer == "the generator ended first")
}

// CapacityComparisonFile is the result file in the directory of a comparison of two searches.
const CapacityComparisonFile = "comparison.json"

// CapacityComparisonSchema is the version of the JSON of `loadgen capacity compare`.
const CapacityComparisonSchema = "stormglass.capacity-comparison/v1"

// CapacityComparison compares the results of two searches, A and B.
type CapacityComparison struct {
	Schema      string          `json:"schema"` // always stormglass.capacity-comparison/v1
	Sides       [2]CapacitySide `json:"sides"`  // the searches A and B
	Differences []Difference    `json:"differences"`
	InTurns     bool            `json:"inTurns"` // the searches alternated their trials
	// Answer: "B is lower", "B is higher", "no difference seen" or "could not tell" (low, median and high are then 0)
	Answer string `json:"answer"`
	Why    string `json:"why,omitempty"` // why the answer is "could not tell"
	// ExitCode: 1 (B is lower), 3 (could not tell), 4 (the environment failed) or 0 (any other answer)
	ExitCode int `json:"exitCode"`
	// Low: lower end of the ratio's 90% interval. If only a bound of A's or B's capacity is known, the true ratio may
	// be further from 1
	Low    float64 `json:"low"`
	Median float64 `json:"median"` // estimate of the ratio: B's capacity divided by A's
	High   float64 `json:"high"`   // upper end of the ratio's 90% interval
}

// CapacitySide is one of the two compared searches.
type CapacitySide struct {
	Dir string `json:"dir"` // directory of the search
	Capacity
}
