package result

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Files of the directory of a search for capacity. Beside them are the runs of its trials: trial-01, trial-02.
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
	Field     string    `json:"field"` // of the scenario, which is raised
	Unit      string    `json:"unit"`  // "per second" or "count"
	From      float64   `json:"from"`  // the range
	To        float64   `json:"to"`
	Width     float64   `json:"width"` // of the interval at which the search ends: 0.15 is 15%
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`      // zero: it did not come to its end
	Overrides []string  `json:"overrides,omitempty"` // values of --set
	AbortOn   []string  `json:"abortOn,omitempty"`   // values of --abort-on, and a digest of --abort-rules: a trial that one of them ends is bad
	InTurns   bool      `json:"inTurns,omitempty"`   // it was beside another search, a trial of each in turns
	Versions  Versions  `json:"versions,omitzero"`   // of the first trial
	Host      Host      `json:"host,omitzero"`
	// Answer: "found", "above the range", "below the range", "the generator ended first",
	// "trials could not be judged", "unconfirmed" or "unfinished"
	Answer   string   `json:"answer"`
	ExitCode int      `json:"exitCode"` // 0 found, 3 else, 4
	Low      *float64 `json:"low"`      // 90% interval of the capacity
	Median   *float64 `json:"median"`
	High     *float64 `json:"high"`
	Held     *float64 `json:"held"` // the highest load of a good trial
	// Confirmed: the load that was tried again at the end; null: none yet
	Confirmed *Confirmed `json:"confirmed"`
	// GaveWay: gates that failed in bad trials, or what else was wrong: those at the lowest load first, then the most often
	GaveWay []GaveWay `json:"gaveWay"`
	// Bottleneck: the resource that was fullest in bad trials; null: none was near its limit
	Bottleneck *Bottleneck `json:"bottleneck"`
	Notes      []string    `json:"notes,omitempty"`
	Trials     []Trial     `json:"trials"` // in their order
	// Digest: of the scenario without its control plane, seed and range: searches of one scenario have the same
	Digest string `json:"digest,omitempty"`
	// PlaneDigest: of the control plane's settings and the seed
	PlaneDigest string `json:"planeDigest,omitempty"`
	// Build: SHA-256 of the controlplane binary
	Build string `json:"build,omitempty"`
	// EndedAt: loads under which a control plane ended by itself, did not take a load's objects or was not ready; the next time such a trial is bad
	EndedAt []float64 `json:"endedAt,omitempty"`
}

// GaveWay is a gate and how often it failed.
type GaveWay struct {
	Gate   string `json:"gate"`
	Trials int    `json:"trials"`
}

// Use is how much of a resource was used.
type Use struct {
	Resource  string  `json:"resource"`
	What      string  `json:"what"`
	Component string  `json:"component,omitempty"` // whose it is
	Share     float64 `json:"share"`               // 1: all of it
}

// Confirmed is the load that was tried again after the interval was narrow, and how often it held.
type Confirmed struct {
	Load   float64 `json:"load"`
	Good   int     `json:"good"`
	Trials int     `json:"trials"`
}

// Bottleneck is a resource and how many bad trials point to it.
type Bottleneck struct {
	Use
	Trials int `json:"trials"`
	// FullWhenLight: it was as full at the lightest load that held
	FullWhenLight bool `json:"fullWhenLight,omitempty"`
}

// Trial is one run of a search.
type Trial struct {
	Number  int     `json:"number"` // from 1
	Dir     string  `json:"dir"`
	Load    float64 `json:"load"`
	Outcome string  `json:"outcome"` // "good", "bad", "invalid" (the generator was the limit), "no data"
	Why     string  `json:"why,omitempty"`
	// Machine: why the trial was measured on a busy machine, by phase; absent: it was not
	Machine []string `json:"machine,omitempty"`
	Gates   []Gate   `json:"gates"`
	// Offered and Achieved: requests a second of all loads, in the phase with the most of them
	Offered  float64 `json:"offeredPerSecond"`
	Achieved float64 `json:"achievedPerSecond"`
	P50      float64 `json:"p50Seconds"` // of the slowest load in it
	P99      float64 `json:"p99Seconds"`
	// Cores: processors that each component used in that phase, or, without requests, in the last one
	Cores map[string]float64 `json:"cores"`
	// Uses: of the fullest resources, in the phase with the most requests
	Uses []Use `json:"uses,omitempty"`
}

// Check reports whether a search may have written it.
func (c *Capacity) Check() error {
	if c.Field == "" || c.From <= 0 || c.To <= c.From {
		return errors.New("it does not say what was searched")
	}
	for i, t := range c.Trials {
		if t.Number != i+1 || t.Load <= 0 {
			return fmt.Errorf("trials[%d] is none", i)
		}
		if !slices.Contains([]string{"good", "bad", "invalid", "no data"}, t.Outcome) {
			return fmt.Errorf("trials[%d] has the outcome %q", i, t.Outcome)
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

// MayBeLower reports whether the capacity lies below its interval if not in it.
func (c Capacity) MayBeLower() bool {
	return c.Answer == "unconfirmed" || c.Answer == "below the range"
}

// MayBeHigher reports whether the capacity lies above what held if not at it.
func (c Capacity) MayBeHigher() bool {
	return c.Held != nil && (c.Answer == "above the range" || c.Answer == "the generator ended first")
}

// CapacityComparisonFile is in the directory of two searches in turns.
const CapacityComparisonFile = "comparison.json"

// CapacityComparisonSchema is the version of the JSON of `loadgen capacity compare`.
const CapacityComparisonSchema = "stormglass.capacity-comparison/v1"

// CapacityComparison is two searches side by side.
type CapacityComparison struct {
	Schema      string          `json:"schema"` // stormglass.capacity-comparison/v1
	Sides       [2]CapacitySide `json:"sides"`  // A and B
	Differences []Difference    `json:"differences"`
	InTurns     bool            `json:"inTurns"` // the searches went on at one time
	// Answer: "B is lower", "B is higher", "no difference seen" or "could not tell"
	Answer   string `json:"answer"`
	Why      string `json:"why,omitempty"` // it could not be told
	ExitCode int    `json:"exitCode"`      // 0, 1 where B is lower, 3 where it could not be told, 4
	// Low, Median, High: B's capacity over A's, with a 90% interval; 0 where it could not be told. A side that was not found
	// can only move it away from 1
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// CapacitySide is one of two searches.
type CapacitySide struct {
	Dir string `json:"dir"`
	Capacity
}
