package result

import (
	"errors"
	"fmt"
	"time"
)

// Files in the directory of an A/B comparison. Its subdirectories, such as a/03 and b/03, hold the runs of A and of B.
const (
	ABFile     = "ab.json"
	ABHTMLFile = "ab.html"
)

// ABSchema is the version of ab.json.
const ABSchema = "stormglass.ab/v1"

// Answer is the conclusion about one figure (a compared metric of the runs), or about all gated figures together.
type Answer string

// The values of Answer.
const (
	Regressed    Answer = "regressed"
	NotRegressed Answer = "not regressed"
	Improved     Answer = "improved"
	CouldNotTell Answer = "could not tell"
)

// AB is the content of ab.json: a comparison that decides whether B is worse than A.
type AB struct {
	Schema   string    `json:"schema"` // always stormglass.ab/v1
	Scenario string    `json:"scenario"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // absent if the command did not finish
	Seed     int64     `json:"seed"`           // seed of the random order of A and B
	Host     Host      `json:"host,omitzero"`
	A        Side      `json:"a"`
	B        Side      `json:"b"`
	Plan     Plan      `json:"plan"`
	// Answer: "regressed", "could not tell", "improved" or "not regressed" ([rules](comparing.md#answers)); "could not
	// tell" also without gated figures or without pairs
	Answer Answer `json:"answer"`
	// ExitCode: 0: improved or not regressed, 1: regressed, 3: could not tell, 4: the environment failed
	ExitCode int               `json:"exitCode"`
	Reasons  []string          `json:"reasons"` // reasons for the exit code, and how many runs did not pass
	Notes    []string          `json:"notes,omitempty"`
	Sets     *Sets             `json:"sets,omitempty"`
	Pairs    []Pair            `json:"pairs"`   // including discarded pairs
	Thrown   int               `json:"thrown"`  // number of discarded pairs
	Figures  []ABFigure        `json:"figures"` // compared metrics; first the gated ones, which decide the answer
	Labels   map[string]string `json:"labels,omitempty"`
	Grown    []SpanGrowth      `json:"grown,omitempty"` // not tested for significance
}

// Sets holds recorded runs of A and of B that are compared without pairs.
type Sets struct {
	// Differences: settings of the control plane, versions, hosts, variants and seeds that differ
	Differences []Difference `json:"differences"`
	A           []Member     `json:"a"`
	B           []Member     `json:"b"`
}

// Difference is a fact that differs between the runs of A and of B.
type Difference struct {
	Name string `json:"name"` // such as "seed"
	A    string `json:"a"`
	B    string `json:"b"`
}

// Side is one of the two compared configurations, A or B.
type Side struct {
	Spec    []string `json:"spec"`          // the side as given on the command line; empty: the unchanged scenario
	Set     []string `json:"set,omitempty"` // changed fields of the scenario, as path=value
	Variant string   `json:"variant,omitempty"`
	// ControlPlane: path of the controlplane binary; absent: the binary that `loadgen run` uses
	ControlPlane string   `json:"controlPlane,omitempty"`
	Revision     string   `json:"revision,omitempty"` // commit that the binary was built from
	Versions     Versions `json:"versions,omitzero"`  // versions in the first run of this side
	Baseline     string   `json:"baseline,omitempty"` // directory of A's runs, if they were recorded earlier
	Digest       string   `json:"digest,omitempty"`   // SHA-256 of the scenario with the changes of this side
	Build        string   `json:"build,omitempty"`    // SHA-256 of the controlplane binary
}

// Plan holds the parameters of the tests that compare pairs ([method](comparing.md#answers)).
type Plan struct {
	Looks  []Look  `json:"looks"`  // ordered by number of pairs
	Change float64 `json:"change"` // smallest mean change that counts as a change; 0.05 is 5%
	// Margin: a metric has not regressed if the upper bound of its change is below this fraction
	Margin     float64 `json:"margin"`
	Confidence float64 `json:"confidence"` // one-sided confidence level of the bounds of changes
	Figures    int     `json:"figures"`    // maximum number of metrics that decide the answer
	// Spread: maximum spread, between equal control planes, of a metric that decides the answer
	Spread float64 `json:"spread"`
	Throw  Throw   `json:"throw"`
}

// Look is an interim test after a number of pairs. The comparison ends after a test with a clear answer.
type Look struct {
	Pairs int     `json:"pairs"`
	Alpha float64 `json:"alpha"` // probability of a false alarm at this test, for one metric
}

// Most returns the maximum number of pairs of the comparison.
func (p Plan) Most() int {
	if len(p.Looks) == 0 {
		return 0
	}
	return p.Looks[len(p.Looks)-1].Pairs
}

// Throw holds bounds for disturbances of the machine during a run. The comparison discards a pair if one of its runs
// exceeds a bound.
type Throw struct {
	Steal float64 `json:"steal"` // fraction of processor time that the hypervisor took
	Other float64 `json:"other"` // fraction of processor time that processes outside the run used
	IO    float64 `json:"io"`    // fraction of the run's time in which some process waited for a disk (PSI)
}

// Pair is one run of A and one of B, back to back.
type Pair struct {
	Number int    `json:"number"`           // from 1; 0: the warm-up, which does not count
	Order  string `json:"order"`            // "AB" or "BA"; "B" if A is a baseline
	Thrown string `json:"thrown,omitempty"` // why the pair was discarded
	A      Member `json:"a"`
	B      Member `json:"b"`
}

// Member is one run of a comparison.
type Member struct {
	Dir      string             `json:"dir"` // run directory, relative to the comparison's directory
	Verdict  Verdict            `json:"verdict"`
	Values   map[string]float64 `json:"values,omitempty"`  // value of each compared metric that has data, by name
	AtLeast  []string           `json:"atLeast,omitempty"` // compared metrics whose value is a lower bound
	Unfit    []string           `json:"unfit,omitempty"`   // bounds that the generator exceeded
	Ungated  bool               `json:"ungated,omitempty"` // the run did not pass only because the scenario has no gates
	Seconds  float64            `json:"seconds"`           // total length of the run's phases
	CPUs     int                `json:"cpus"`
	Machine  *Machine           `json:"machine,omitempty"`
	Versions Versions           `json:"versions"` // versions of the programs in the run
}

// Statistic says how the values of several runs are combined into one.
type Statistic string

// The values of Statistic.
const (
	GeometricMean Statistic = "geometric mean"
	// Mean is the statistic if a value is 0 or negative, because such values have no geometric mean.
	Mean Statistic = "mean"
	// WeightedMean replaces Mean if all values of A are positive. The change is then the mean of the pairs' changes.
	WeightedMean Statistic = "mean with weights 1/A"
)

// ABFigure is the result for one figure (compared metric) over all pairs. Changes are fractions of A's value; a
// positive change is worse.
type ABFigure struct {
	Name   string `json:"name"` // name of the compared metric
	Unit   string `json:"unit"`
	Better string `json:"better"` // "lower" or "higher"
	Gated  bool   `json:"gated"`  // the metric decides the answer
	// Calibrated: spread of the metric between equal control planes, from the scenario
	Calibrated *float64 `json:"calibrated,omitempty"`
	Advice     string   `json:"advice,omitempty"` // why the metric does not decide the answer
	Answer     Answer   `json:"answer"`           // "regressed", "not regressed", "improved" or "could not tell"
	Detail     string   `json:"detail,omitempty"` // why the answer is "could not tell"
	Pairs      int      `json:"pairs"`            // number of pairs used for the answer
	// Statistic: how a and b are computed from the pairs: "geometric mean", "mean" or "mean with weights 1/A"
	Statistic Statistic `json:"statistic,omitempty"`
	A         *float64  `json:"a"`
	B         *float64  `json:"b"`
	MedianA   *float64  `json:"medianA,omitempty"`
	MedianB   *float64  `json:"medianB,omitempty"`
	Change    *float64  `json:"change"`   // mean change: B/A - 1, or A/B - 1 for a metric that is better when higher
	Low       *float64  `json:"low"`      // lower bound of change, with the plan's confidence
	High      *float64  `json:"high"`     // upper bound of change, with the plan's confidence
	Spread    *float64  `json:"spread"`   // standard deviation, over all pairs, of ln(B/A) or of the differences divided by A
	T         *float64  `json:"t"`        // t statistic of the test
	Critical  *float64  `json:"critical"` // critical value of t for the test
	Changes   []float64 `json:"changes"`  // ln(B/A) of each pair that counts, positive for worse
}

// Check returns an error if c cannot be the result of a comparison.
func (c *AB) Check() error {
	for i, p := range c.Pairs {
		switch {
		case p.Number != i:
			return fmt.Errorf("pairs[%d].number is %d, which is not its index", i, p.Number)
		case p.Order != "AB" && p.Order != "BA" && p.Order != "B":
			return fmt.Errorf("pairs[%d].order is %q, which is not AB, BA or B", i, p.Order)
		}
	}
	if len(c.Plan.Looks) == 0 {
		return errors.New("it has no plan")
	}
	return CheckLabels(c.Labels)
}
