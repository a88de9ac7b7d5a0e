// Package result holds the shapes of what a run leaves behind: run.json and
// measurements.json (raw, written by the run), timeline.jsonl, and
// result.json (judged, rebuilt by `loadgen report`). It is data only. Times
// are UTC; durations are float64 seconds, in fields that end in Seconds;
// sizes are bytes.
package result

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Schema is the version of result.json. A change that breaks a reader raises
// the number; fields may be added under the same number.
const Schema = "stormglass.result/v1"

// Files of a run directory.
const (
	RunFile          = "run.json"
	ScenarioFile     = "scenario.yaml"
	MeasurementsFile = "measurements.json"
	TimelineFile     = "timeline.jsonl"
	TSDBDir          = "tsdb"
	ResultFile       = "result.json"
	JUnitFile        = "junit.xml"
	HTMLFile         = "report.html"
	ReplayPrefix     = "replay-" // of the times of a load's replay
)

// Verdict is the outcome of a gate or of a run.
type Verdict string

// The verdicts. Only Pass passes.
const (
	Pass   Verdict = "pass"
	Fail   Verdict = "fail"
	NoData Verdict = "no data" // could not judge
)

// Result is result.json.
type Result struct {
	Schema string `json:"schema"` // the version of this file: stormglass.result/v1
	Run    Run    `json:"run"`    // what was run, where and when, as in run.json
	// Verdict: Fail if any gate failed, else NoData if anything could not be
	// judged, else Pass.
	Verdict Verdict `json:"verdict"`
	// ExitCode is the exit code of `loadgen run`: 0, 1, 3 or 4.
	ExitCode int `json:"exitCode"`
	// Reasons say in a line each why the verdict is not Pass, or why the run
	// as a whole could not be judged (interrupted, generator saturated, a
	// component restarted, scrapes lost).
	Reasons []string `json:"reasons"`
	// Notes say in a line each what to know before believing the verdict, such as
	// that a change of the run's files could not be told.
	Notes []string `json:"notes,omitempty"`
	Gates []Gate   `json:"gates"` // the judged gates, in the scenario's order
	// Key are the four key metrics, always all four, always in this order.
	Key          []KeyMetric  `json:"keyMetrics"`
	Measurements Measurements `json:"measurements"` // what the generator saw itself, as in measurements.json
	// Breakdown splits each load's mean latency between the generator, the
	// connection and the API server, phase by phase.
	Breakdown []Breakdown `json:"breakdown,omitempty"`
	// Recovery holds the faults' effects and the time to recover from them.
	Recovery *Recovery `json:"recovery,omitempty"`
	// Signals are the scenario's, judged against their own noise.
	Signals []Signal `json:"signals,omitempty"`
	Figures []Figure `json:"figures,omitempty"` // the rows of the comparison of variants
	// Components is the cost of each component and of the generator over
	// the whole run.
	Components []ComponentCost `json:"components"`
}

// Run is run.json: what was run, where, when.
type Run struct {
	ID       string `json:"id"`       // unique, and the value of the label on all that the run creates
	Scenario string `json:"scenario"` // the scenario's name
	// Variant of the scenario that was run; empty: the scenario as it is written.
	Variant string    `json:"variant,omitempty"`
	Started time.Time `json:"started"` // before the control plane was started
	Ended   time.Time `json:"ended"`   // when everything was stopped
	Seed    int64     `json:"seed"`    // of everything random
	// Overrides are the --set values.
	Overrides []string `json:"overrides,omitempty"`
	// WithoutGates are the gates that --without-gate left out.
	WithoutGates []string `json:"withoutGates,omitempty"`
	// Warnings of before the start: what works and is not wise.
	Warnings []string `json:"warnings,omitempty"`
	// MissedFaults are those that never began, since their phase ended before, or
	// were lost before their time was over, one line each. The run cannot pass then.
	MissedFaults []string `json:"missedFaults,omitempty"`
	Interrupted  bool     `json:"interrupted"` // the user stopped the run
	// Failure is set when the environment failed under the run (exit 4).
	Failure string `json:"failure,omitempty"`
	// Left names what the run made in a user's cluster and could not remove, why, and
	// the command that removes it. Failure has it too.
	Left     string   `json:"left,omitempty"`
	Versions Versions `json:"versions"` // of the programs that took part
	Host     Host     `json:"host"`     // the machine that ran the generator
	Cluster  Cluster  `json:"cluster"`  // what the run was aimed at
	// UnexpectedExits are components that ended by themselves, one line each: what ended
	// the control plane and, in result.json, those that no fault accounts for.
	UnexpectedExits []string `json:"unexpectedExits,omitempty"`
	// Files are the SHA-256 digests of the files that judging reads, by path: of the
	// scenario from the start, of the others from the end. A run older than they are
	// has none.
	Files map[string]string `json:"files,omitempty"`
	// Digest is the SHA-256 of run.json itself, with zeros in its place.
	Digest string `json:"digest,omitempty"`
}

// Versions of the programs that took part.
type Versions struct {
	Stormglass string `json:"stormglass"`     // loadgen's version
	Kubernetes string `json:"kubernetes"`     // the API server's
	Etcd       string `json:"etcd,omitempty"` // the members'
	Go         string `json:"go"`             // what loadgen was built with
}

// Host is the machine that ran the generator.
type Host struct {
	OS          string `json:"os"`                 // operating system and architecture, as linux/amd64
	Kernel      string `json:"kernel"`             // its release
	CPUs        int    `json:"cpus"`               // logical CPUs
	CPUModel    string `json:"cpuModel,omitempty"` // as the kernel names it
	MemoryBytes int64  `json:"memoryBytes"`        // of the machine
	Descriptors uint64 `json:"descriptorLimit"`    // open files that the generator may have
}

// Cluster is the target of the run.
type Cluster struct {
	// Bundled is true for a plane that Stormglass started for this run.
	Bundled    bool                `json:"bundled"`
	Name       string              `json:"name"`          // of the context in the kubeconfig
	Server     string              `json:"server"`        // the API server's URL
	Deviations []control.Deviation `json:"deviations"`    // settings that differ from upstream's defaults; empty for a user's cluster
	Targets    []string            `json:"scrapeTargets"` // what was scraped
	// Prometheus is the one that the metrics were read from, where they were not
	// scraped by the run.
	Prometheus string `json:"prometheus,omitempty"`
	// ReadySeconds is how long the bundled plane took to be ready.
	ReadySeconds float64 `json:"readySeconds,omitempty"`
}

// Gate is one judged gate.
type Gate struct {
	Name string `json:"name"` // unique in the scenario
	// Objective is the built-in objective, or "expr".
	Objective string `json:"objective"`
	// Expr is the PromQL that was evaluated, or empty for an exact
	// client-side result.
	Expr    string   `json:"expr,omitempty"`
	Over    []string `json:"over"`    // the phases judged
	Verdict Verdict  `json:"verdict"` // pass, fail or no data
	// Value and Bound are in Unit: "seconds", "ratio", "bytes", "count",
	// "per hour", "per second" or "" for a bare number. Value is nil where there is no data.
	Value *float64 `json:"value"`
	// Withheld is the value that is not judged, because the generator was saturated or
	// its own delay decides. Value is nil then.
	Withheld *float64 `json:"withheld,omitempty"`
	// AtLeast: the true value is not below Value, and may be far above it: what
	// was waited for was not seen.
	AtLeast bool    `json:"atLeast,omitempty"`
	Bound   float64 `json:"bound"` // the limit, in Unit
	// BrokenIn are the phases of Over whose value broke the bound; empty where the
	// value is of no single phase.
	BrokenIn []string `json:"brokenIn,omitempty"`
	// Op is "<=" or ">=".
	Op   string `json:"op"`
	Unit string `json:"unit"` // of Value and Bound
	// Detail says what the value is made of, or why there is none.
	Detail string `json:"detail,omitempty"`
}

// Figure is one row of the comparison of variants: what a gate would judge.
type Figure struct {
	Name      string   `json:"name"`              // unique in the scenario
	Objective string   `json:"objective"`         // the built-in objective, or "expr"
	Expr      string   `json:"expr,omitempty"`    // the PromQL that was evaluated
	Over      []string `json:"over"`              // the phases
	Value     *float64 `json:"value"`             // in Unit; nil where there is no data
	AtLeast   bool     `json:"atLeast,omitempty"` // as a gate's
	Unit      string   `json:"unit"`              // as a gate's
	Better    string   `json:"better"`            // "lower" or "higher"
	// Detail says what the value is made of, or why there is none.
	Detail string `json:"detail,omitempty"`
}

// KeyMetric is one of the four metrics of the first screen.
type KeyMetric struct {
	// Name is the metric's name.
	Name string `json:"name"`
	// Rows are its values over the whole run: one for each verb of
	// apiserver_request_duration_seconds, one otherwise.
	Rows []KeyRow `json:"rows"`
	// Missing says why there are no rows.
	Missing string `json:"missing,omitempty"`
}

// KeyRow is one value of a key metric.
type KeyRow struct {
	// Label is the verb, the member or the attempt's result.
	Label string `json:"label"`
	// P50, P95 and P99 for histograms; Value for leader changes.
	P50   *float64 `json:"p50Seconds,omitempty"`
	P95   *float64 `json:"p95Seconds,omitempty"` // 95th percentile of a histogram
	P99   *float64 `json:"p99Seconds,omitempty"` // 99th percentile of a histogram
	Value *float64 `json:"value,omitempty"`      // of a counter: its increase over the run
	Count float64  `json:"count"`                // observations behind the quantiles
}

// ComponentCost holds the resources one process used over the run, from its own
// process_* metrics.
type ComponentCost struct {
	Name           string  `json:"name"`           // the instance label: etcd-0, kube-apiserver-0, loadgen
	CPUSeconds     float64 `json:"cpuSeconds"`     // user and system time
	CPUShare       float64 `json:"cpuShare"`       // of all CPU seconds in the table
	MaxRSSBytes    float64 `json:"maxRSSBytes"`    // the largest resident set at a scrape
	MaxDescriptors float64 `json:"maxDescriptors"` // the most open descriptors at a scrape
}
