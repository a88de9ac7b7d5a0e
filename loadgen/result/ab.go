package result

import (
	"errors"
	"fmt"
	"time"
)

// Files of the directory of an A/B comparison. Beside them are the runs of each side: a/03, b/03.
const (
	ABFile     = "ab.json"
	ABHTMLFile = "ab.html"
)

// ABSchema is the version of ab.json.
const ABSchema = "stormglass.ab/v1"

// Answer is what pairs of runs tell of a figure, or of all that are gated.
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
	Ended    time.Time `json:"ended,omitzero"` // zero: it did not come to its end
	Seed     int64     `json:"seed"`           // of the order of the pairs
	Host     Host      `json:"host,omitzero"`  // on which the pairs ran
	A        Side      `json:"a"`
	B        Side      `json:"b"`
	Plan     Plan      `json:"plan"`
	// Answer: "regressed" if any gated figure is, else "could not tell" if any could not be told,
	// else "improved" if any is, else "not regressed"
	Answer   Answer     `json:"answer"`
	ExitCode int        `json:"exitCode"` // 0 not regressed or improved, 1 regressed, 3 could not tell, 4
	Reasons  []string   `json:"reasons"`  // why the answer is not 0
	Notes    []string   `json:"notes,omitempty"`
	Sets     *Sets      `json:"sets,omitempty"` // of recorded runs, which are no pairs
	Pairs    []Pair     `json:"pairs"`          // in the order in which they ran, those that were thrown away too
	Thrown   int        `json:"thrown"`         // pairs that were thrown away
	Figures  []ABFigure `json:"figures"`        // gated ones first
}

// Sets are recorded runs of A and of B.
type Sets struct {
	// Differences: of the planes' configuration, versions, hosts and seeds
	Differences []Difference `json:"differences"`
	A           []Member     `json:"a"`
	B           []Member     `json:"b"`
}

// Difference is a fact that is not the same on both sides.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Side is A or B: the same scenario on another control plane, or with other settings.
type Side struct {
	Spec    []string `json:"spec"`              // as it was given; empty: the scenario as it is written
	Set     []string `json:"set,omitempty"`     // fields of the scenario, as path=value
	Variant string   `json:"variant,omitempty"` // of the scenario
	// ControlPlane: the binary; empty: as of a run
	ControlPlane string   `json:"controlPlane,omitempty"`
	Revision     string   `json:"revision,omitempty"` // the commit that the binary was built from
	Versions     Versions `json:"versions,omitzero"`  // of its first run
	// Baseline: A's runs were recorded before, and are in this directory
	Baseline string `json:"baseline,omitempty"`
	// Digest: SHA-256 of the scenario as this side runs it
	Digest string `json:"digest,omitempty"`
	// Build: SHA-256 of the controlplane binary
	Build string `json:"build,omitempty"`
}

// Plan is how pairs are judged.
type Plan struct {
	Looks []Look `json:"looks"` // numbers of pairs after which it may end, rising
	// Change: the least mean change that is called one; 0.05 is 5%
	Change float64 `json:"change"`
	// Margin: of what is called not regressed the upper bound of the change lies below it
	Margin     float64 `json:"margin"`
	Confidence float64 `json:"confidence"` // of the bounds, one-sided
	// Figures: so many share no alpha; more do, by Holm's method
	Figures int `json:"figures"`
	// Spread: figures of a larger one are not gated
	Spread float64 `json:"spread"`
	// Throw: bounds past which a pair is thrown away
	Throw Throw `json:"throw"`
}

// Look is a number of pairs after which a comparison may end.
type Look struct {
	Pairs int `json:"pairs"`
	// Alpha: the share of false alarms at this look, of one figure
	Alpha float64 `json:"alpha"`
}

// Most is the number of pairs after which the plan ends.
func (p Plan) Most() int {
	if len(p.Looks) == 0 {
		return 0
	}
	return p.Looks[len(p.Looks)-1].Pairs
}

// Throw holds the bounds of what the machine did beside a run, in shares of its processors' time.
type Throw struct {
	Steal float64 `json:"steal"` // taken by the hypervisor
	Other float64 `json:"other"` // used by processes that are not the run's
	IO    float64 `json:"io"`    // of the run's time in which some process waited for a disk (PSI)
}

// Pair is one run of A and one of B, back to back.
type Pair struct {
	Number int    `json:"number"` // 0: to warm up; it does not count
	Order  string `json:"order"`  // "AB" or "BA"; "B" where A is a baseline
	// Thrown says why the pair does not count; empty: it does
	Thrown string `json:"thrown,omitempty"`
	A      Member `json:"a"`
	B      Member `json:"b"`
}

// Member is one run of a pair.
type Member struct {
	Dir     string             `json:"dir"`              // in the comparison's directory
	Verdict Verdict            `json:"verdict"`          // of the run
	Values  map[string]float64 `json:"values,omitempty"` // figures by name; those without data are not in it
	// AtLeast: figures whose value is a lower bound: what they measure had not ended, or a phase had no data
	AtLeast []string `json:"atLeast,omitempty"`
	Unfit   []string `json:"unfit,omitempty"` // bounds that the generator passed
	// Ungated: the scenario has no gates, for which alone the run did not pass
	Ungated bool     `json:"ungated,omitempty"`
	Seconds float64  `json:"seconds"` // of its phases
	CPUs    int      `json:"cpus"`    // of the machine
	Machine *Machine `json:"machine,omitempty"`
	// Versions of the programs that took part
	Versions Versions `json:"versions"`
}

// Statistic names how the values of several runs are summed up in one.
type Statistic string

// The statistics of the sides of a comparison.
const (
	GeometricMean Statistic = "geometric mean"
	// Mean: some values are 0 or negative, so that they have no geometric mean.
	Mean Statistic = "mean"
	// WeightedMean: values of B are 0, and the change is the mean of the changes of the pairs.
	WeightedMean Statistic = "mean with weights 1/A"
)

// ABFigure is one figure over all pairs. Changes are shares of A's value, positive for worse.
type ABFigure struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Better string `json:"better"` // "lower" or "higher"
	Gated  bool   `json:"gated"`  // it decides; others are advice
	// Calibrated: the spread between planes of one configuration, as the scenario has it
	Calibrated *float64 `json:"calibrated,omitempty"`
	Advice     string   `json:"advice,omitempty"` // why it is not gated
	Answer     Answer   `json:"answer"`
	Detail     string   `json:"detail,omitempty"` // why it could not be told
	Pairs      int      `json:"pairs"`            // that the answer is from
	// Statistic of A, B and Change, so that the change leads from A to B. Empty: A and B are medians, as older versions
	// wrote them, and Change is not theirs
	Statistic Statistic `json:"statistic,omitempty"`
	A         *float64  `json:"a"`
	B         *float64  `json:"b"`
	MedianA   *float64  `json:"medianA,omitempty"`
	MedianB   *float64  `json:"medianB,omitempty"`
	Change    *float64  `json:"change"` // B/A less one; of a figure that is better when it is higher, A/B less one
	Low       *float64  `json:"low"`    // bounds of the change, each at the plan's confidence
	High      *float64  `json:"high"`
	Spread    *float64  `json:"spread"` // standard deviation of ln(B/A), or of the differences as shares of A
	T         *float64  `json:"t"`
	Critical  *float64  `json:"critical"`
	// Changes: ln(B/A) of each pair that counts, positive for worse; none where a value is 0 and differences are judged
	Changes []float64 `json:"changes"`
}

// Check reports whether a comparison may have written it.
func (c *AB) Check() error {
	for i, p := range c.Pairs {
		switch {
		case p.Number != i:
			return fmt.Errorf("pairs[%d] has the number %d", i, p.Number)
		case p.Order != "AB" && p.Order != "BA" && p.Order != "B":
			return fmt.Errorf("pairs[%d] has the order %q", i, p.Order)
		}
	}
	if len(c.Plan.Looks) == 0 {
		return errors.New("it has no plan")
	}
	return nil
}
