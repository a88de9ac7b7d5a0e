package result

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Files in the directory of a capacity search. It also contains the runs of the trials, in directories such as
// trial-01.
const (
	CapacityFile     = "capacity.json"
	CapacityHTMLFile = "capacity.html"
)

// CapacitySchema is the version of capacity.json.
const CapacitySchema = "stormglass.capacity/v1"

// Capacity is capacity.json: the highest load at which a scenario's gates hold.
type Capacity struct {
	Schema    string    `json:"schema"` // stormglass.capacity/v1
	Scenario  string    `json:"scenario"`
	Field     string    `json:"field"` // the scenario's field that the search varies
	Unit      string    `json:"unit"`  // "per second" or "count"
	From      float64   `json:"from"`  // from and to: the range of the search
	To        float64   `json:"to"`
	Width     float64   `json:"width"` // width of the interval at which the search ends; 0.15 is 15%
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`      // zero: the search did not finish
	Overrides []string  `json:"overrides,omitempty"` // values of --set
	AbortOn   []string  `json:"abortOn,omitempty"`   // values of --abort-on, and a digest of --abort-rules; a trial that one of them ends is bad
	InTurns   bool      `json:"inTurns,omitempty"`   // whether trials alternated with the trials of another search
	Versions  Versions  `json:"versions,omitzero"`   // versions of the first trial
	Host      Host      `json:"host,omitzero"`
	// Answer: "found", "above the range", "below the range", "the generator ended first",
	// "trials could not be judged", "unconfirmed" or "unfinished"
	Answer   string   `json:"answer"`
	ExitCode int      `json:"exitCode"` // 0 found, 4 the environment failed, 3 otherwise
	Low      *float64 `json:"low"`      // 90% interval of the capacity
	Median   *float64 `json:"median"`
	High     *float64 `json:"high"`
	Held     *float64 `json:"held"` // the highest load of a good trial
	// Confirmed: the load that was tried again at the end; null: no load was tried again yet
	Confirmed *Confirmed `json:"confirmed"`
	// GaveWay: gates that failed in bad trials, or other reasons, sorted by the lowest load, then by the number of trials
	GaveWay []GaveWay `json:"gaveWay"`
	// Bottleneck: the resource that limited the most bad trials; null: no resource was near its limit
	Bottleneck *Bottleneck `json:"bottleneck"`
	Notes      []string    `json:"notes,omitempty"`
	Trials     []Trial     `json:"trials"` // in the order in which they ran
	// Digest: digest of the scenario without its control plane, seed and range; the same for all searches of one scenario
	Digest string `json:"digest,omitempty"`
	// PlaneDigest: digest of the control plane's settings and the seed
	PlaneDigest string `json:"planeDigest,omitempty"`
	// Build: SHA-256 of the controlplane binary
	Build string `json:"build,omitempty"`
	// EndedAt: loads under which the control plane ended by itself, the objects of a load were not made or the first phase
	// did not begin; if this happens again at the same load, the trial is bad
	EndedAt []float64 `json:"endedAt,omitempty"`
}

// GaveWay is a gate and how often it failed.
type GaveWay struct {
	Gate   string `json:"gate"`
	Trials int    `json:"trials"`
}

// Use is the used share of a resource.
type Use struct {
	Resource  string  `json:"resource"`
	What      string  `json:"what"`
	Component string  `json:"component,omitempty"` // the component that the resource belongs to
	Share     float64 `json:"share"`               // 1: fully used
}

// Confirmed is the load that was tried again once the interval was narrow enough, and how often it held.
type Confirmed struct {
	Load   float64 `json:"load"`
	Good   int     `json:"good"`
	Trials int     `json:"trials"`
}

// Bottleneck is a resource and the number of bad trials that it limited.
type Bottleneck struct {
	Use
	Trials int `json:"trials"`
	// FullWhenLight: the resource was just as full at the lowest load that held
	FullWhenLight bool `json:"fullWhenLight,omitempty"`
}

// Trial is one run of a search.
type Trial struct {
	Number  int     `json:"number"` // counts from 1
	Dir     string  `json:"dir"`
	Load    float64 `json:"load"`
	Outcome string  `json:"outcome"` // "good", "bad", "invalid" (the generator was the limit), "no data"
	Why     string  `json:"why,omitempty"`
	// Machine: why the machine was busy during the trial, by phase; absent if the machine was not busy
	Machine []string `json:"machine,omitempty"`
	Gates   []Gate   `json:"gates"`
	// Offered and Achieved: requests per second of all loads, in the phase with the most requests
	Offered  float64 `json:"offeredPerSecond"`
	Achieved float64 `json:"achievedPerSecond"`
	P50      float64 `json:"p50Seconds"` // latency of the slowest load in that phase
	P99      float64 `json:"p99Seconds"`
	// Cores: processors that each component used in that phase, or in the last phase if there are no requests
	Cores map[string]float64 `json:"cores"`
	// Uses: the fullest resources, in the phase with the most requests
	Uses []Use `json:"uses,omitempty"`
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
	return nil
}

// MayBeLower reports whether the capacity may lie below the interval that the search found.
func (c Capacity) MayBeLower() bool {
	return c.Answer == "unconfirmed" || c.Answer == "below the range"
}

// MayBeHigher reports whether the capacity may lie above the highest load at which the gates held.
func (c Capacity) MayBeHigher() bool {
	return c.Held != nil && (c.Answer == "above the range" || c.Answer == "the generator ended first")
}

// CapacityComparisonFile is the file of the comparison in the directory of two alternating searches.
const CapacityComparisonFile = "comparison.json"

// CapacityComparisonSchema is the version of the JSON of `loadgen capacity compare`.
const CapacityComparisonSchema = "stormglass.capacity-comparison/v1"

// CapacityComparison is two searches side by side.
type CapacityComparison struct {
	Schema      string          `json:"schema"` // stormglass.capacity-comparison/v1
	Sides       [2]CapacitySide `json:"sides"`  // A and B
	Differences []Difference    `json:"differences"`
	InTurns     bool            `json:"inTurns"` // whether the two searches alternated their trials
	// Answer: "B is lower", "B is higher", "no difference seen" or "could not tell"
	Answer   string `json:"answer"`
	Why      string `json:"why,omitempty"` // why the answer is "could not tell"
	ExitCode int    `json:"exitCode"`      // 1 if B is lower, 3 if the answer is "could not tell", 4 if the environment failed, otherwise 0
	// Low, Median, High: B's capacity divided by A's, with a 90% interval; 0 if the answer is "could not tell". A side whose
	// capacity was not found can only move the ratio further from 1
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// CapacitySide is one of two searches.
type CapacitySide struct {
	Dir string `json:"dir"`
	Capacity
}
