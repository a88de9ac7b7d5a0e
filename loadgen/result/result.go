// Package result holds the shapes of what a run leaves behind: run.json and
// measurements.json (raw, written by the run), timeline.jsonl, and
// result.json (judged, rebuilt by `loadgen report`). It is data only. Times
// are UTC; durations are float64 seconds, in fields that end in Seconds;
// sizes are bytes.
//
// Within a schema version fields are added, and none is renamed, removed or given
// another meaning: a program that reads result.json ignores fields that it does not
// know. The Go types may gain fields too, so name fields in composite literals.
package result

import (
	"fmt"
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
	Schema string `json:"schema"` // stormglass.result/v1
	Run    Run    `json:"run"`
	// Verdict: "fail" if any gate failed, else "no data" if anything could not be judged,
	// else "pass"
	Verdict  Verdict  `json:"verdict"`
	ExitCode int      `json:"exitCode"`        // of `loadgen run`: 0, 1, 3 or 4
	Reasons  []string `json:"reasons"`         // why the verdict is not pass
	Notes    []string `json:"notes,omitempty"` // what to know before believing it
	// BusyMachine: the phases that were measured on a busy machine, and why: latencies and
	// durations that break their bounds in them are not judged
	BusyMachine  []string     `json:"busyMachine,omitempty"`
	Gates        []Gate       `json:"gates"`
	Key          []KeyMetric  `json:"keyMetrics"` // always all four
	Measurements Measurements `json:"measurements"`
	Breakdown    []Breakdown  `json:"breakdown,omitempty"`  // by phase and load
	Scheduling   []Scheduling `json:"scheduling,omitempty"` // by phase
	// Diagnosis of a run that did not pass: the causes, from metrics alone
	Diagnosis  *Diagnosis      `json:"diagnosis,omitempty"`
	Recovery   *Recovery       `json:"recovery,omitempty"`
	Signals    []Signal        `json:"signals,omitempty"`
	Figures    []Figure        `json:"figures,omitempty"` // rows of the comparison of variants
	Components []ComponentCost `json:"components"`
}

// Run is run.json: what was run, where, when.
type Run struct {
	ID           string    `json:"id"` // unique; the label's value on all that the run creates
	Scenario     string    `json:"scenario"`
	Variant      string    `json:"variant,omitempty"` // empty: the scenario as written
	Started      time.Time `json:"started"`
	Ended        time.Time `json:"ended"`
	Seed         int64     `json:"seed"`
	Overrides    []string  `json:"overrides,omitempty"`    // values of --set
	WithoutGates []string  `json:"withoutGates,omitempty"` // left out by --without-gate
	WithoutHooks bool      `json:"withoutHooks,omitempty"` // left out by --no-hooks
	Warnings     []string  `json:"warnings,omitempty"`     // of the checks before the start, and of the run
	// MissedFaults: faults that never began or were lost early: no pass
	MissedFaults []string `json:"missedFaults,omitempty"`
	// Profiles: pprof profiles that were taken, and those that could not be
	Profiles    []Profile `json:"profiles,omitempty"`
	Hooks       []Hook    `json:"hooks,omitempty"`   // commands before and after phases, in their order
	Interrupted bool      `json:"interrupted"`       // by the user
	Aborted     string    `json:"aborted,omitempty"` // what of abortOn, or which limit of the cluster, ended the run, which has failed
	// AbortOn: conditions that would have ended the run: of the scenario, of --abort-on, and the usual ones on a user's cluster
	AbortOn []string `json:"abortOn,omitempty"`
	Failure string   `json:"failure,omitempty"` // how the environment failed (exit 4)
	// LostWorkers: of several generators, those that were lost or late, and how: the run could not be judged (exit 3)
	LostWorkers []string `json:"lostWorkers,omitempty"`
	// Left: objects not removed from a user's cluster, why, and the command that does
	Left     string   `json:"left,omitempty"`
	Versions Versions `json:"versions"`
	Host     Host     `json:"host"`
	Cluster  Cluster  `json:"cluster"`
	// RemoteWrite: the samples that were sent on by --remote-write
	RemoteWrite *RemoteWrite `json:"remoteWrite,omitempty"`
	// UnexpectedExits: components that ended the plane by their end and, in result.json,
	// those whose end no fault accounts for
	UnexpectedExits []string `json:"unexpectedExits,omitempty"`
	// Files: SHA-256 of each file that judging reads, by path: of the scenario at the start,
	// of others at the end
	Files  map[string]string `json:"files,omitempty"`
	Digest string            `json:"digest,omitempty"` // SHA-256 of run.json itself, with zeros in its place
}

// CutShort says what ended a run before its time; empty: nothing did.
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

// Versions of the programs that took part.
type Versions struct {
	Stormglass string `json:"stormglass"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd,omitempty"`
	Go         string `json:"go"`
	// Moves: the versions that upgrades and downgrades took components to, in order; the others are those at the start
	Moves []VersionMove `json:"moves,omitempty"`
}

// VersionMove is one version that components were taken to.
type VersionMove struct {
	Of      string   `json:"of"` // etcd or kubernetes
	Version string   `json:"version"`
	On      []string `json:"on,omitempty"` // the components by name, or by kind where it is all of a kind; none: all
}

// Host is the machine that ran the generator.
type Host struct {
	OS          string `json:"os"` // as linux/amd64
	Kernel      string `json:"kernel"`
	CPUs        int    `json:"cpus"`
	CPUModel    string `json:"cpuModel,omitempty"`
	MemoryBytes int64  `json:"memoryBytes"`
	Descriptors uint64 `json:"descriptorLimit"`
}

// Facts are the versions and the host by name: what tells runs of one scenario apart besides their settings.
func Facts(v Versions, h Host) map[string]string {
	return map[string]string{
		"Stormglass": v.Stormglass, "Kubernetes": v.Kubernetes, "etcd": v.Etcd, "Go": v.Go,
		"host": fmt.Sprintf("%s, %d CPUs, %s, %d MiB", h.CPUModel, h.CPUs, h.Kernel, h.MemoryBytes>>20),
	}
}

// Cluster is the target of the run.
type Cluster struct {
	Bundled      bool                `json:"bundled"` // a control plane of Stormglass' own
	Name         string              `json:"name"`    // the kubeconfig's context; "shared" (SharedCluster): Bundled, and started before the run
	Server       string              `json:"server"`
	Deviations   []control.Deviation `json:"deviations"`
	Targets      []string            `json:"scrapeTargets"`
	Prometheus   string              `json:"prometheus,omitempty"` // the server that samples were copied from
	ReadySeconds float64             `json:"readySeconds,omitempty"`
}

// SharedCluster is the name of a control plane of Stormglass' own that was started before the run.
const SharedCluster = "shared"

// Gate is one judged gate.
type Gate struct {
	Name      string   `json:"name"`           // unique in the scenario
	Objective string   `json:"objective"`      // built-in, or "expr"
	Expr      string   `json:"expr,omitempty"` // PromQL; empty for a client-side result
	Over      []string `json:"over"`           // phases
	Verdict   Verdict  `json:"verdict"`        // pass, fail or no data
	Value     *float64 `json:"value"`          // null: no data
	// Withheld: a value not judged: the generator was saturated, its own delay decides, or it
	// breaks its bound on a busy machine
	Withheld *float64 `json:"withheld,omitempty"`
	// AtLeast: Value is a least one: the awaited state was not observed, or of a figure a phase had no data
	AtLeast bool    `json:"atLeast,omitempty"`
	Bound   float64 `json:"bound"`
	// BrokenIn: phases whose value broke the bound; empty where it is of no single phase
	BrokenIn []string `json:"brokenIn,omitempty"`
	Op       string   `json:"op"` // "<=" or ">="
	// Unit: "seconds", "ratio", "bytes", "count", "per hour", "per second", or "" for a bare
	// number
	Unit   string `json:"unit"`
	Detail string `json:"detail,omitempty"` // how the value came about, or why there is none
	// TooShort: no data, as the alert's for, offset or interval is longer than the run or phase
	TooShort bool `json:"tooShort,omitempty"`
	// Allowed: no data, which counts for nothing, by `loadgen gate --allow-no-data`
	Allowed bool `json:"allowed,omitempty"`
}

// Figure is one row of the comparison of variants: what a gate would judge.
type Figure struct {
	Name      string   `json:"name"`      // unique in the scenario
	Objective string   `json:"objective"` // built-in, or "expr"
	Expr      string   `json:"expr,omitempty"`
	Over      []string `json:"over"`              // phases
	Value     *float64 `json:"value"`             // null: no data
	AtLeast   bool     `json:"atLeast,omitempty"` // as a gate's
	Unit      string   `json:"unit"`              // as a gate's
	Better    string   `json:"better"`            // "lower" or "higher"
	Detail    string   `json:"detail,omitempty"`  // how the value came about, or why there is none
}

// KeyMetric is one of the four metrics of the first screen.
type KeyMetric struct {
	Name string `json:"name"` // the metric's
	// Rows: over the whole run: one, or one for each verb
	Rows    []KeyRow `json:"rows"`
	Missing string   `json:"missing,omitempty"` // why there are no rows
}

// KeyRow is one value of a key metric.
type KeyRow struct {
	Label string   `json:"label"` // verb, member or result of the attempt
	P50   *float64 `json:"p50Seconds,omitempty"`
	P95   *float64 `json:"p95Seconds,omitempty"`
	P99   *float64 `json:"p99Seconds,omitempty"`
	Value *float64 `json:"value,omitempty"` // of a counter: its increase
	Count float64  `json:"count"`           // observations
}

// ComponentCost holds the resources one process used over the run, from its own
// process_* metrics.
type ComponentCost struct {
	Name           string  `json:"name"` // etcd-0, kube-apiserver-0, loadgen
	CPUSeconds     float64 `json:"cpuSeconds"`
	CPUShare       float64 `json:"cpuShare"` // of all CPU seconds in the table
	MaxRSSBytes    float64 `json:"maxRSSBytes"`
	MaxDescriptors float64 `json:"maxDescriptors"`
}
