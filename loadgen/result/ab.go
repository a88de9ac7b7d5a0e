package result

import (
	"errors"
	"fmt"
	"time"
)

// Files in the directory of an A/B comparison. It also contains the runs of each side, in directories
// such as a/03 and b/03.
const (
	ABFile     = "ab.json"
	ABHTMLFile = "ab.html"
)

// ABSchema is the version of ab.json.
const ABSchema = "stormglass.ab/v1"

// Answer is the conclusion about one figure, or about all gated figures together.
type Answer string

// The answers.
const (
	Regressed    Answer = "regressed"
	NotRegressed Answer = "not regressed"
	Improved     Answer = "improved"
	CouldNotTell Answer = "could not tell"
)

// AB is ab.json: is B worse than A?
type AB struct {
	Schema   string    `json:"schema"` // stormglass.ab/v1
	Scenario string    `json:"scenario"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // zero: the comparison did not finish
	Seed     int64     `json:"seed"`           // seed of the order of A and B in the pairs
	Host     Host      `json:"host,omitzero"`  // the machine that ran the pairs
	A        Side      `json:"a"`
	B        Side      `json:"b"`
	Plan     Plan      `json:"plan"`
	// Answer: "regressed" if any gated figure regressed, else "could not tell" if any answer is unknown or none exists,
	// else "improved" if any figure improved, else "not regressed"
	Answer   Answer     `json:"answer"`
	ExitCode int        `json:"exitCode"` // 0 not regressed or improved, 1 regressed, 3 could not tell, 4 the environment failed
	Reasons  []string   `json:"reasons"`  // reasons for the exit code, and how many runs did not pass
	Notes    []string   `json:"notes,omitempty"`
	Sets     *Sets      `json:"sets,omitempty"` // the recorded runs, if they are compared without pairs
	Pairs    []Pair     `json:"pairs"`          // in the order in which they ran, including those thrown away
	Thrown   int        `json:"thrown"`         // number of pairs thrown away
	Figures  []ABFigure `json:"figures"`        // gated ones first
}

// Sets are recorded runs of A and of B.
type Sets struct {
	// Differences: in the planes' configuration, versions, hosts and seeds
	Differences []Difference `json:"differences"`
	A           []Member     `json:"a"`
	B           []Member     `json:"b"`
}

// Difference is a fact that differs between the sides.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Side is A or B: the same scenario with a different control plane or different settings.
type Side struct {
	Spec    []string `json:"spec"`              // as given on the command line; empty: the unchanged scenario
	Set     []string `json:"set,omitempty"`     // fields of the scenario, as path=value
	Variant string   `json:"variant,omitempty"` // variant of the scenario
	// ControlPlane: path of the binary; empty: the same binary as for a single run
	ControlPlane string   `json:"controlPlane,omitempty"`
	Revision     string   `json:"revision,omitempty"` // the commit that the binary was built from
	Versions     Versions `json:"versions,omitzero"`  // versions of the side's first run
	// Baseline: directory of A's runs, if they were recorded earlier
	Baseline string `json:"baseline,omitempty"`
	// Digest: SHA-256 of this side's scenario, with its settings
	Digest string `json:"digest,omitempty"`
	// Build: SHA-256 of the controlplane binary
	Build string `json:"build,omitempty"`
}

// Plan is how pairs are judged.
type Plan struct {
	Looks []Look `json:"looks"` // the numbers of pairs after which the comparison may end, in ascending order
	// Change: the smallest mean change that counts as a change; 0.05 is 5%
	Change float64 `json:"change"`
	// Margin: a figure has not regressed if the upper bound of its change is below this
	Margin     float64 `json:"margin"`
	Confidence float64 `json:"confidence"` // one-sided confidence of the bounds
	// Figures: the maximum number of figures that each get the whole alpha; if there are more, they share it by Holm's method
	Figures int `json:"figures"`
	// Spread: figures with a larger calibrated spread are not gated
	Spread float64 `json:"spread"`
	// Throw: a pair that exceeds one of these bounds is thrown away
	Throw Throw `json:"throw"`
}

// Look is an interim analysis: a comparison may end after this number of pairs.
type Look struct {
	Pairs int `json:"pairs"`
	// Alpha: the rate of false alarms at this look, for one figure
	Alpha float64 `json:"alpha"`
}

// Most returns the number of pairs after which the comparison ends at the latest.
func (p Plan) Most() int {
	if len(p.Looks) == 0 {
		return 0
	}
	return p.Looks[len(p.Looks)-1].Pairs
}

// Throw bounds the other work on the machine during a run, as shares of its processors' time.
type Throw struct {
	Steal float64 `json:"steal"` // share taken by the hypervisor
	Other float64 `json:"other"` // share used by processes outside the run
	IO    float64 `json:"io"`    // the share of the run's time in which some process waited for a disk (PSI)
}

// Pair is one run of A and one of B, back to back.
type Pair struct {
	Number int    `json:"number"` // 0: the warm-up, which does not count
	Order  string `json:"order"`  // "AB" or "BA"; "B" if A is a baseline
	// Thrown says why the pair was thrown away; empty: it was not
	Thrown string `json:"thrown,omitempty"`
	A      Member `json:"a"`
	B      Member `json:"b"`
}

// Member is one run of a pair.
type Member struct {
	Dir     string             `json:"dir"`              // run directory, in the comparison's directory
	Verdict Verdict            `json:"verdict"`          // verdict of the run
	Values  map[string]float64 `json:"values,omitempty"` // figures by name, without those that have no data
	// AtLeast: figures whose value is a lower bound, because the measured process had not ended or a phase had no data
	AtLeast []string `json:"atLeast,omitempty"`
	Unfit   []string `json:"unfit,omitempty"` // bounds that the generator exceeded
	// Ungated: the only reason why the run did not pass is that the scenario has no gates
	Ungated bool     `json:"ungated,omitempty"`
	Seconds float64  `json:"seconds"` // total length of the run's phases
	CPUs    int      `json:"cpus"`    // number of CPUs of the machine
	Machine *Machine `json:"machine,omitempty"`
	// Versions of the programs in the run
	Versions Versions `json:"versions"`
}

// Statistic names how the values of several runs are combined into one.
type Statistic string

// The statistics of the sides of a comparison.
const (
	GeometricMean Statistic = "geometric mean"
	// Mean is used if a value is 0 or negative, because such values have no geometric mean.
	Mean Statistic = "mean"
	// WeightedMean is used if values of B are 0: the change is the mean of the pairs' changes.
	WeightedMean Statistic = "mean with weights 1/A"
)

// ABFigure is one figure over all pairs. Changes are shares of A's value, positive for worse.
type ABFigure struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Better string `json:"better"` // "lower" or "higher"
	Gated  bool   `json:"gated"`  // whether the figure decides the answer; other figures are advice
	// Calibrated: the spread between planes of one configuration, from the scenario
	Calibrated *float64 `json:"calibrated,omitempty"`
	Advice     string   `json:"advice,omitempty"` // why the figure is not gated
	Answer     Answer   `json:"answer"`
	Detail     string   `json:"detail,omitempty"` // why the answer is "could not tell"
	Pairs      int      `json:"pairs"`            // number of pairs that the answer is based on
	// Statistic: how A, B and Change combine the values of the pairs, so that Change is the change from A to B. Empty: an older
	// version wrote A and B as medians, and Change is not the change between them
	Statistic Statistic `json:"statistic,omitempty"`
	A         *float64  `json:"a"`
	B         *float64  `json:"b"`
	MedianA   *float64  `json:"medianA,omitempty"`
	MedianB   *float64  `json:"medianB,omitempty"`
	Change    *float64  `json:"change"` // B/A - 1, or A/B - 1 for a figure that is better when higher
	Low       *float64  `json:"low"`    // low and high: bounds of the change, each at the plan's confidence
	High      *float64  `json:"high"`
	Spread    *float64  `json:"spread"` // standard deviation of ln(B/A), or of the differences as shares of A
	T         *float64  `json:"t"`
	Critical  *float64  `json:"critical"`
	// Changes: ln(B/A) of each pair that counts, positive for worse; empty if a value is 0 and differences are judged
	Changes []float64 `json:"changes"`
}

// Check returns an error if c is not a valid comparison.
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
	return nil
}
