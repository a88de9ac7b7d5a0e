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
	Schema  string  `json:"schema"` // always stormglass.result/v1
	Run     Run     `json:"run"`
	Verdict Verdict `json:"verdict"` // "pass", "fail" or "no data" ([rules](objectives.md#verdicts))
	// ExitCode: [exit code](objectives.md#verdicts) of `loadgen run`: 0, 1, 3 or 4
	ExitCode int      `json:"exitCode"`
	Reasons  []string `json:"reasons"`         // why the verdict is not "pass"
	Notes    []string `json:"notes,omitempty"` // limitations of the verdict
	// BusyMachine: phases measured on a [busy machine](objectives.md#a-busy-machine), and why it was busy
	BusyMachine  []string        `json:"busyMachine,omitempty"`
	Gates        []Gate          `json:"gates"`
	Alerts       []Alert         `json:"alerts,omitempty"` // only from `loadgen gate`
	Key          []KeyMetric     `json:"keyMetrics"`
	Measurements Measurements    `json:"measurements"`
	Breakdown    []Breakdown     `json:"breakdown,omitempty"`
	Scheduling   []Scheduling    `json:"scheduling,omitempty"`
	Diagnosis    *Diagnosis      `json:"diagnosis,omitempty"` // only if the run did not pass
	Recovery     *Recovery       `json:"recovery,omitempty"`
	Signals      []Signal        `json:"signals,omitempty"`
	Figures      []Figure        `json:"figures,omitempty"`
	Traces       *Traces         `json:"traces,omitempty"` // only with `--trace`
	Components   []ComponentCost `json:"components"`
}

// Run is the content of run.json: what ran, where and when.
type Run struct {
	ID           string            `json:"id"` // unique ID, also the label of all objects that the run creates
	Scenario     string            `json:"scenario"`
	Variant      string            `json:"variant,omitempty"` // variant of the scenario that ran
	Started      time.Time         `json:"started"`
	Ended        time.Time         `json:"ended"`
	Seed         int64             `json:"seed"`
	Overrides    []string          `json:"overrides,omitempty"`    // values of `--set`
	WithoutGates []string          `json:"withoutGates,omitempty"` // values of `--without-gate`
	WithoutHooks bool              `json:"withoutHooks,omitempty"` // `--no-hooks` left out the hooks
	Warnings     []string          `json:"warnings,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"` // values of `--label`
	// MissedFaults: faults that never began, or ended too early; the run then does not pass
	MissedFaults []string  `json:"missedFaults,omitempty"`
	Profiles     []Profile `json:"profiles,omitempty"`
	Hooks        []Hook    `json:"hooks,omitempty"`
	Interrupted  bool      `json:"interrupted"`
	Aborted      string    `json:"aborted,omitempty"` // condition or limit that ended the run early; such a run fails
	AbortOn      []string  `json:"abortOn,omitempty"` // conditions that [end the run early](fuse.md)
	Failure      string    `json:"failure,omitempty"` // how the environment failed (exit code 4)
	// LostWorkers: generators that were lost or late, and the reasons; the run then could not be judged
	LostWorkers []string `json:"lostWorkers,omitempty"`
	// Left: objects that remain in a user's cluster, the reason, and the command that removes them
	Left        string       `json:"left,omitempty"`
	Versions    Versions     `json:"versions"`
	Host        Host         `json:"host"`
	Cluster     Cluster      `json:"cluster"`
	RemoteWrite *RemoteWrite `json:"remoteWrite,omitempty"` // samples sent by `--remote-write`
	// UnexpectedExits: exits of components that no fault explains, or that ended the control plane
	UnexpectedExits []string          `json:"unexpectedExits,omitempty"`
	Files           map[string]string `json:"files,omitempty"`  // SHA-256, by path, of each file that affects the verdict
	Digest          string            `json:"digest,omitempty"` // SHA-256 of run.json, computed with zeros in this field
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
	// Moves: upgrades and downgrades during the run; the other fields are the versions at the start
	Moves []VersionMove `json:"moves,omitempty"`
}

// VersionMove is one upgrade or downgrade during a run.
type VersionMove struct {
	Of      string `json:"of"` // "etcd" or "kubernetes"
	Version string `json:"version"`
	// On: names or kinds of the components that changed; absent: all components
	On []string `json:"on,omitempty"`
}

// Host is the machine that ran the generator.
type Host struct {
	OS          string `json:"os"` // such as linux/amd64
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
	// Name: the kubeconfig's context, "bundled", or "shared" for a bundled control plane that already ran
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
	Name      string   `json:"name"`           // unique in the scenario
	Objective string   `json:"objective"`      // name of a built-in [objective](objectives.md), or "expr"
	Expr      string   `json:"expr,omitempty"` // PromQL expression; absent if the generator measured the value
	Over      []string `json:"over"`           // judged phases
	Verdict   Verdict  `json:"verdict"`
	Value     *float64 `json:"value"` // measured value; null: no data
	// Withheld: measured value that is not judged, for example because the generator was
	// [saturated](objectives.md#no-data-for-the-run)
	Withheld   *float64 `json:"withheld,omitempty"`
	AtLeast    bool     `json:"atLeast,omitempty"` // the value is only a lower bound
	Bound      float64  `json:"bound"`
	BrokenIn   []string `json:"brokenIn,omitempty"`   // phases whose value broke the bound
	WorstPhase string   `json:"worstPhase,omitempty"` // phase with the gate's value
	WorstLoad  string   `json:"worstLoad,omitempty"`  // load with the gate's value
	Op         string   `json:"op"`                   // "<=" or ">=", between value and bound
	// Unit: "seconds", "ratio", "bytes", "count", "per hour", "per second", or "" for a bare number
	Unit     string `json:"unit"`
	Detail   string `json:"detail,omitempty"`   // how the value was computed, or why it is missing
	TooShort bool   `json:"tooShort,omitempty"` // the gate has no data, because the run or phase is too short
	// Allowed: `loadgen gate --allow-no-data` accepts that the gate has no data
	Allowed bool `json:"allowed,omitempty"`
}

// Alert is the outcome of an alert of `loadgen gate --rules`.
type Alert struct {
	Name string `json:"name"` // name of the alert
	// Outcome: "fired", "pending" (active for less than its `for`), "silent" or "no data"
	Outcome       string  `json:"outcome"`
	Verdict       Verdict `json:"verdict,omitempty"`       // absent: the alert does not affect the verdict of the run
	ActiveSeconds float64 `json:"activeSeconds,omitempty"` // longest time for which the alert's condition held
	Detail        string  `json:"detail"`
	Expr          string  `json:"expr"`
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
	Name      string   `json:"name"` // unique in the scenario
	Objective string   `json:"objective"`
	Expr      string   `json:"expr,omitempty"`
	Over      []string `json:"over"`  // judged phases
	Value     *float64 `json:"value"` // measured value; null: no data
	AtLeast   bool     `json:"atLeast,omitempty"`
	Unit      string   `json:"unit"`
	Better    string   `json:"better"`           // "lower" or "higher"
	Detail    string   `json:"detail,omitempty"` // how the value was computed, or why it is missing
}

// KeyMetric is one of the four metrics on the first screen of a report.
type KeyMetric struct {
	Name    string   `json:"name"` // name of the metric
	Rows    []KeyRow `json:"rows"`
	Missing string   `json:"missing,omitempty"` // why there are no rows
}

// KeyRow is one row of a key metric: the values in the whole run, for example of one verb, etcd member or scheduling
// result.
type KeyRow struct {
	Label string   `json:"label"`
	P50   *float64 `json:"p50Seconds,omitempty"`
	P95   *float64 `json:"p95Seconds,omitempty"`
	P99   *float64 `json:"p99Seconds,omitempty"`
	Value *float64 `json:"value,omitempty"` // increase of the counter, if the metric is a counter
	Count float64  `json:"count"`
}

// ComponentCost holds the resources that one process used in the run, from its process_* metrics.
type ComponentCost struct {
	Name           string  `json:"name"` // instance, such as etcd-0, or loadgen
	CPUSeconds     float64 `json:"cpuSeconds"`
	CPUShare       float64 `json:"cpuShare"` // fraction of the CPU time of all components
	MaxRSSBytes    float64 `json:"maxRSSBytes"`
	MaxDescriptors float64 `json:"maxDescriptors"`
}
