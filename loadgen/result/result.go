// Package result defines the files in a run directory: run.json and
// measurements.json (raw, written by the run), timeline.jsonl, and
// result.json (judged, rebuilt by `loadgen report`). It contains only data. Times
// are UTC; durations are float64 seconds, in fields that end in Seconds;
// sizes are bytes.
//
// Within a schema version, fields may be added, but are not renamed, removed or given
// another meaning. Programs that read result.json must ignore unknown fields.
// The Go types may gain fields too, so name fields in composite literals.
package result

import (
	"fmt"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Schema is the version of result.json. A change that breaks readers raises the number; an added field does not.
const Schema = "stormglass.result/v1"

// Files in a run directory.
const (
	RunFile          = "run.json"
	ScenarioFile     = "scenario.yaml"
	MeasurementsFile = "measurements.json"
	TimelineFile     = "timeline.jsonl"
	TSDBDir          = "tsdb"
	TracesDir        = "traces"
	CreatedFile      = "created.jsonl" // objects that the run may have left in a cluster
	ResultFile       = "result.json"
	JUnitFile        = "junit.xml"
	HTMLFile         = "report.html"
	ReplayPrefix     = "replay-" // prefix of the name of a file with the times of a load's replay
)

// Verdict is the outcome of a gate or of a run.
type Verdict string

// The values of Verdict. Only Pass means that the run or gate passed.
const (
	Pass   Verdict = "pass"
	Fail   Verdict = "fail"
	NoData Verdict = "no data" // the run or gate could not be judged
)

// Result is the content of result.json: the judged run.
type Result struct {
	Schema string `json:"schema"` // always stormglass.result/v1
	Run    Run    `json:"run"`
	// Verdict: verdict on the run: "pass", "fail" or "no data" ([rules](objectives.md#verdicts))
	Verdict Verdict `json:"verdict"`
	// ExitCode: [exit code](objectives.md#verdicts) of `loadgen run`: 0, 1, 3 or 4
	ExitCode int      `json:"exitCode"`
	Reasons  []string `json:"reasons"`         // why the verdict is not "pass"
	Notes    []string `json:"notes,omitempty"` // limitations of the verdict
	// BusyMachine: phases measured on a [busy machine](objectives.md#a-busy-machine), and why it was busy
	BusyMachine  []string        `json:"busyMachine,omitempty"`
	Gates        []Gate          `json:"gates"`
	Alerts       []Alert         `json:"alerts,omitempty"` // outcomes of alerts; only from `loadgen gate`
	Key          []KeyMetric     `json:"keyMetrics"`
	Measurements Measurements    `json:"measurements"`
	Breakdown    []Breakdown     `json:"breakdown,omitempty"`  // parts of the latency, by phase, load, verb and resource
	Scheduling   []Scheduling    `json:"scheduling,omitempty"` // time that the scheduler used, by phase
	Diagnosis    *Diagnosis      `json:"diagnosis,omitempty"`  // causes of problems; only if the run did not pass
	Recovery     *Recovery       `json:"recovery,omitempty"`
	Signals      []Signal        `json:"signals,omitempty"`
	Figures      []Figure        `json:"figures,omitempty"`
	Traces       *Traces         `json:"traces,omitempty"` // summary of the traces; only with `--trace`
	Components   []ComponentCost `json:"components"`
}

// Run is the content of run.json: what ran, where and when.
type Run struct {
	ID           string            `json:"id"` // unique ID of the run, and label of all objects that the run creates
	Scenario     string            `json:"scenario"`
	Variant      string            `json:"variant,omitempty"` // variant of the scenario that ran
	Started      time.Time         `json:"started"`
	Ended        time.Time         `json:"ended"`
	Seed         int64             `json:"seed"`
	Overrides    []string          `json:"overrides,omitempty"`    // values of `--set`
	WithoutGates []string          `json:"withoutGates,omitempty"` // gates that `--without-gate` left out
	WithoutHooks bool              `json:"withoutHooks,omitempty"` // `--no-hooks` left out the hooks
	Warnings     []string          `json:"warnings,omitempty"`     // warnings from the checks before the start, and from the run
	Labels       map[string]string `json:"labels,omitempty"`       // values of `--label`, by name
	// MissedFaults: faults that never began, or ended too early; the run then does not pass
	MissedFaults []string  `json:"missedFaults,omitempty"`
	Profiles     []Profile `json:"profiles,omitempty"`
	Hooks        []Hook    `json:"hooks,omitempty"`
	Interrupted  bool      `json:"interrupted"` // the user interrupted the run
	// Aborted: condition in abortOn, or limit such as etcd's quota, that ended the run early; such a run fails
	Aborted string `json:"aborted,omitempty"`
	// AbortOn: conditions that [end the run early](fuse.md): from the scenario, `--abort-on` and the defaults on a
	// user's cluster
	AbortOn []string `json:"abortOn,omitempty"`
	Failure string   `json:"failure,omitempty"` // how the environment failed (exit code 4)
	// LostWorkers: generators that were lost or late, and the reasons; the run then could not be judged
	LostWorkers []string `json:"lostWorkers,omitempty"`
	// Left: objects that remain in a user's cluster, the reason, and the command that removes them
	Left        string       `json:"left,omitempty"`
	Versions    Versions     `json:"versions"`
	Host        Host         `json:"host"`
	Cluster     Cluster      `json:"cluster"`
	RemoteWrite *RemoteWrite `json:"remoteWrite,omitempty"` // samples sent by `--remote-write`
	// UnexpectedExits: components whose exit ended the control plane; in result.json also exits that no fault explains
	UnexpectedExits []string `json:"unexpectedExits,omitempty"`
	// Files: SHA-256, by path, of each file that affects the verdict, at the end of the run; SHA-256 of the scenario
	// file at the start
	Files  map[string]string `json:"files,omitempty"`
	Digest string            `json:"digest,omitempty"` // SHA-256 of run.json, computed with zeros in this field
}

// CutShort returns the reason why a run ended early, or "" if it did not end early.
func (r Run) CutShort() string {
	switch {
	case r.Interrupted:
		return "it was interrupted"
	case r.Aborted != "":
		return "it was ended early by " + r.Aborted
	case r.Failure != "":
		return "its environment failed"
	case len(r.LostWorkers) > 0:
		return "a worker was lost"
	}
	return ""
}

// Versions are the versions of the programs in a run.
type Versions struct {
	Stormglass string `json:"stormglass"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd,omitempty"`
	Go         string `json:"go"`
	// Moves: upgrades and downgrades during the run, in order; the other fields are the versions at the start
	Moves []VersionMove `json:"moves,omitempty"`
}

// VersionMove is one upgrade or downgrade during a run.
type VersionMove struct {
	Of      string `json:"of"` // product that changed: "etcd" or "kubernetes"
	Version string `json:"version"`
	// On: names or kinds of the components that changed; absent: all components
	On []string `json:"on,omitempty"`
}

// Host is the machine that ran the generator.
type Host struct {
	OS          string `json:"os"` // operating system and architecture, such as linux/amd64
	Kernel      string `json:"kernel"`
	CPUs        int    `json:"cpus"`
	CPUModel    string `json:"cpuModel,omitempty"`
	MemoryBytes int64  `json:"memoryBytes"`
	Descriptors uint64 `json:"descriptorLimit"`
}

// Facts returns the versions of the programs and the properties of the host, each with its name, to show how two runs
// differ.
func Facts(v Versions, h Host) map[string]string {
	return map[string]string{
		"Stormglass": v.Stormglass, "Kubernetes": v.Kubernetes, "etcd": v.Etcd, "Go": v.Go,
		"host": fmt.Sprintf("%s, %d CPUs, %s, %d MiB", h.CPUModel, h.CPUs, h.Kernel, h.MemoryBytes>>20),
	}
}

// Cluster is the target of the run.
type Cluster struct {
	Bundled bool `json:"bundled"` // Stormglass started the control plane
	// Name: name of the kubeconfig's context, "bundled", or "shared" for a bundled control plane that already ran
	Name         string              `json:"name"`
	Server       string              `json:"server"`
	Deviations   []control.Deviation `json:"deviations"`
	Targets      []string            `json:"scrapeTargets"`
	Prometheus   string              `json:"prometheus,omitempty"`   // URL of the server from which samples were copied
	ReadySeconds float64             `json:"readySeconds,omitempty"` // time until the bundled control plane was ready
}

// SharedCluster is the name of a bundled control plane that was started before the run.
const SharedCluster = "shared"

// Gate is one criterion for the run to pass, with its value and verdict.
type Gate struct {
	Name      string   `json:"name"`           // name of the gate, unique in the scenario
	Objective string   `json:"objective"`      // name of a built-in [objective](objectives.md), or "expr"
	Expr      string   `json:"expr,omitempty"` // PromQL expression; absent if the generator measured the value
	Over      []string `json:"over"`           // phases that the gate judges
	Verdict   Verdict  `json:"verdict"`        // verdict on the gate: "pass", "fail" or "no data"
	Value     *float64 `json:"value"`          // measured value; null: no data
	// Withheld: measured value that is not judged, because the generator was
	// [saturated](objectives.md#no-data-for-the-run), because the generator's delay would decide the verdict, or
	// because the value exceeds its bound on a busy machine
	Withheld *float64 `json:"withheld,omitempty"`
	// AtLeast: the value is a lower bound, because the awaited state was not observed or a phase had no data
	AtLeast bool    `json:"atLeast,omitempty"`
	Bound   float64 `json:"bound"`
	// BrokenIn: phases whose value broke the bound; absent if one value covers several phases
	BrokenIn   []string `json:"brokenIn,omitempty"`
	WorstPhase string   `json:"worstPhase,omitempty"` // phase with the gate's value, if it is one phase
	WorstLoad  string   `json:"worstLoad,omitempty"`  // load with the gate's value, if it is one load
	Op         string   `json:"op"`                   // operator between value and bound for the gate to pass: "<=" or ">="
	// Unit: unit of value and bound: "seconds", "ratio", "bytes", "count", "per hour", "per second", or "" for a bare
	// number
	Unit   string `json:"unit"`
	Detail string `json:"detail,omitempty"` // how the value was computed, or why it is missing
	// TooShort: the gate has no data, because the run or phase is shorter than the alert's `for`, offset or interval
	TooShort bool `json:"tooShort,omitempty"`
	// Allowed: `loadgen gate --allow-no-data` accepts that the gate has no data
	Allowed bool `json:"allowed,omitempty"`
}

// Alert is the outcome of an alert of `loadgen gate --rules`.
type Alert struct {
	Name string `json:"name"` // name of the alert
	// Outcome: outcome of the alert: "fired", "pending" (active for less than its `for`), "silent" or "no data"
	Outcome string `json:"outcome"`
	// Verdict: verdict of the alert's gate; absent: the alert does not affect the verdict of the run
	Verdict       Verdict `json:"verdict,omitempty"`
	ActiveSeconds float64 `json:"activeSeconds,omitempty"` // longest time for which the alert's condition held
	Detail        string  `json:"detail"`
	Expr          string  `json:"expr"` // PromQL expression of the alert's rules, after --map has replaced labels
}

// The values of Alert.Outcome.
const (
	AlertFired   = "fired"
	AlertPending = "pending"
	AlertSilent  = "silent"
	AlertNoData  = "no data"
)

// Figure is a metric of a run that comparisons of runs and of variants use.
type Figure struct {
	Name      string   `json:"name"` // name of the metric, unique in the scenario
	Objective string   `json:"objective"`
	Expr      string   `json:"expr,omitempty"`
	Over      []string `json:"over"`
	Value     *float64 `json:"value"` // value of the metric; null: no data
	AtLeast   bool     `json:"atLeast,omitempty"`
	Unit      string   `json:"unit"`
	Better    string   `json:"better"`           // better values: "lower" or "higher"
	Detail    string   `json:"detail,omitempty"` // how the value was computed, or why it is missing
}

// KeyMetric is one of the four metrics on the first screen of a report.
type KeyMetric struct {
	Name string `json:"name"` // name of the metric
	// Rows: values for the whole run: one row, or one row per verb, etcd member or scheduling result
	Rows    []KeyRow `json:"rows"`
	Missing string   `json:"missing,omitempty"` // why there are no rows
}

// KeyRow is one value of a key metric.
type KeyRow struct {
	Label string   `json:"label"` // subject of the row: a verb, an etcd member or a scheduling result
	P50   *float64 `json:"p50Seconds,omitempty"`
	P95   *float64 `json:"p95Seconds,omitempty"`
	P99   *float64 `json:"p99Seconds,omitempty"`
	Value *float64 `json:"value,omitempty"` // increase of the counter, if the metric is a counter
	Count float64  `json:"count"`           // number of observations
}

// ComponentCost holds the resources that one process used in the run, from its process_* metrics.
type ComponentCost struct {
	Name           string  `json:"name"` // instance, such as etcd-0, or loadgen
	CPUSeconds     float64 `json:"cpuSeconds"`
	CPUShare       float64 `json:"cpuShare"` // fraction of the CPU time of all components
	MaxRSSBytes    float64 `json:"maxRSSBytes"`
	MaxDescriptors float64 `json:"maxDescriptors"`
}
