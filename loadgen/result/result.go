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

// Schema is the version of result.json. A change that breaks readers raises
// the number; an added field does not.
const Schema = "stormglass.result/v1"

// Files in a run directory.
const (
	RunFile          = "run.json"
	ScenarioFile     = "scenario.yaml"
	MeasurementsFile = "measurements.json"
	TimelineFile     = "timeline.jsonl"
	TSDBDir          = "tsdb"
	ResultFile       = "result.json"
	JUnitFile        = "junit.xml"
	HTMLFile         = "report.html"
	ReplayPrefix     = "replay-" // prefix of the name of a file with the times of a load's replay
)

// Verdict is the outcome of a gate or of a run.
type Verdict string

// The verdicts. Only Pass passes.
const (
	Pass   Verdict = "pass"
	Fail   Verdict = "fail"
	NoData Verdict = "no data" // could not be judged
)

// Result is result.json.
type Result struct {
	Schema string `json:"schema"` // stormglass.result/v1
	Run    Run    `json:"run"`
	// Verdict: "fail" if a gate failed or a phase that a gate covers did not meet its condition, else "no data" if
	// anything could not be judged or there are no gates, else "pass"
	Verdict  Verdict  `json:"verdict"`
	ExitCode int      `json:"exitCode"`        // exit code of `loadgen run`: 0, 1, 3 or 4
	Reasons  []string `json:"reasons"`         // why the verdict is not pass
	Notes    []string `json:"notes,omitempty"` // what to know before relying on the verdict
	// BusyMachine: phases in which the machine was busy, and why; latencies and
	// durations that exceed their bounds in these phases are not judged
	BusyMachine  []string     `json:"busyMachine,omitempty"`
	Gates        []Gate       `json:"gates"`
	Key          []KeyMetric  `json:"keyMetrics"` // always all four
	Measurements Measurements `json:"measurements"`
	Breakdown    []Breakdown  `json:"breakdown,omitempty"`  // by phase and load
	Scheduling   []Scheduling `json:"scheduling,omitempty"` // by phase
	// Diagnosis: the causes, from metrics alone, if the run did not pass
	Diagnosis  *Diagnosis      `json:"diagnosis,omitempty"`
	Recovery   *Recovery       `json:"recovery,omitempty"`
	Signals    []Signal        `json:"signals,omitempty"`
	Figures    []Figure        `json:"figures,omitempty"` // rows of the comparison of variants
	Components []ComponentCost `json:"components"`
}

// Run is run.json: what was run, where and when.
type Run struct {
	ID           string    `json:"id"` // unique; also the value of the label on everything that the run creates
	Scenario     string    `json:"scenario"`
	Variant      string    `json:"variant,omitempty"` // empty: the scenario as written
	Started      time.Time `json:"started"`
	Ended        time.Time `json:"ended"`
	Seed         int64     `json:"seed"`
	Overrides    []string  `json:"overrides,omitempty"`    // values of --set
	WithoutGates []string  `json:"withoutGates,omitempty"` // gates left out by --without-gate
	WithoutHooks bool      `json:"withoutHooks,omitempty"` // whether --no-hooks left out the hooks
	Warnings     []string  `json:"warnings,omitempty"`     // warnings from the checks before the start and from the run
	// MissedFaults: faults that never began, or that were not in force for their whole length; the run then does not pass
	MissedFaults []string `json:"missedFaults,omitempty"`
	// Profiles: pprof profiles that were taken or could not be taken
	Profiles    []Profile `json:"profiles,omitempty"`
	Hooks       []Hook    `json:"hooks,omitempty"`   // commands before and after phases, in the order in which they ran
	Interrupted bool      `json:"interrupted"`       // whether the user interrupted the run
	Aborted     string    `json:"aborted,omitempty"` // the condition in abortOn, or the limit of the cluster, that ended the run; the run has failed
	// AbortOn: conditions that end the run: from the scenario, from --abort-on, and the default ones on a user's cluster
	AbortOn []string `json:"abortOn,omitempty"`
	Failure string   `json:"failure,omitempty"` // how the environment failed (exit 4)
	// LostWorkers: generators that were lost or late, and how; the run could not be judged (exit 3)
	LostWorkers []string `json:"lostWorkers,omitempty"`
	// Left: objects that were not removed from a user's cluster, why, and the command that removes them
	Left     string   `json:"left,omitempty"`
	Versions Versions `json:"versions"`
	Host     Host     `json:"host"`
	Cluster  Cluster  `json:"cluster"`
	// RemoteWrite: the samples that --remote-write sent
	RemoteWrite *RemoteWrite `json:"remoteWrite,omitempty"`
	// UnexpectedExits: components whose exit ended the plane and, in result.json, components that exited without a fault that
	// explains it
	UnexpectedExits []string `json:"unexpectedExits,omitempty"`
	// Files: SHA-256 of each file that judging reads, by path. It is computed at the end of the run, and for the
	// scenario at the start
	Files  map[string]string `json:"files,omitempty"`
	Digest string            `json:"digest,omitempty"` // SHA-256 of run.json itself, computed with zeros in this field
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
	// Moves: the upgrades and downgrades of components, in order; the other fields hold the versions at the start
	Moves []VersionMove `json:"moves,omitempty"`
}

// VersionMove is one upgrade or downgrade of components to a version.
type VersionMove struct {
	Of      string `json:"of"` // etcd or kubernetes
	Version string `json:"version"`
	// On: the components by name, or their kind if all components of a kind moved; absent means all components
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

// Facts returns the versions and the host by name. In addition to the settings, these facts distinguish the runs of one
// scenario.
func Facts(v Versions, h Host) map[string]string {
	return map[string]string{
		"Stormglass": v.Stormglass, "Kubernetes": v.Kubernetes, "etcd": v.Etcd, "Go": v.Go,
		"host": fmt.Sprintf("%s, %d CPUs, %s, %d MiB", h.CPUModel, h.CPUs, h.Kernel, h.MemoryBytes>>20),
	}
}

// Cluster is the target of the run.
type Cluster struct {
	Bundled      bool                `json:"bundled"` // a control plane that Stormglass started
	Name         string              `json:"name"`    // the kubeconfig's context; "shared" (SharedCluster): bundled, and started before the run
	Server       string              `json:"server"`
	Deviations   []control.Deviation `json:"deviations"`
	Targets      []string            `json:"scrapeTargets"`
	Prometheus   string              `json:"prometheus,omitempty"` // URL of the server that samples were copied from
	ReadySeconds float64             `json:"readySeconds,omitempty"`
}

// SharedCluster is the name of a bundled control plane that was started before the run.
const SharedCluster = "shared"

// Gate is one judged gate.
type Gate struct {
	Name      string   `json:"name"`           // unique in the scenario
	Objective string   `json:"objective"`      // built-in, or "expr"
	Expr      string   `json:"expr,omitempty"` // PromQL; empty for a client-side result
	Over      []string `json:"over"`           // phases
	Verdict   Verdict  `json:"verdict"`        // pass, fail or no data
	Value     *float64 `json:"value"`          // null: no data
	// Withheld: a value that is not judged, because the generator was saturated, the generator's own delay would decide the
	// verdict, or the value exceeds its bound on a busy machine
	Withheld *float64 `json:"withheld,omitempty"`
	// AtLeast: the value is a lower bound, because the awaited state was not observed or a phase had no data
	AtLeast bool    `json:"atLeast,omitempty"`
	Bound   float64 `json:"bound"`
	// BrokenIn: phases whose value broke the bound; empty if the value does not belong to single phases
	BrokenIn []string `json:"brokenIn,omitempty"`
	Op       string   `json:"op"` // "<=" or ">="
	// Unit: "seconds", "ratio", "bytes", "count", "per hour", "per second", or "" for a bare
	// number
	Unit   string `json:"unit"`
	Detail string `json:"detail,omitempty"` // how the value was computed, or why it is missing
	// TooShort: the gate has no data, because the alert's `for`, offset or interval is longer than the run or phase
	TooShort bool `json:"tooShort,omitempty"`
	// Allowed: the gate has no data, and `loadgen gate --allow-no-data` ignores that
	Allowed bool `json:"allowed,omitempty"`
}

// Figure is one row of the comparison of variants: a value that a gate could judge.
type Figure struct {
	Name      string   `json:"name"`      // unique in the scenario
	Objective string   `json:"objective"` // built-in, or "expr"
	Expr      string   `json:"expr,omitempty"`
	Over      []string `json:"over"`              // phases
	Value     *float64 `json:"value"`             // null: no data
	AtLeast   bool     `json:"atLeast,omitempty"` // as in a gate
	Unit      string   `json:"unit"`              // as in a gate
	Better    string   `json:"better"`            // "lower" or "higher"
	Detail    string   `json:"detail,omitempty"`  // how the value was computed, or why it is missing
}

// KeyMetric is one of the four metrics on the first screen of a report.
type KeyMetric struct {
	Name string `json:"name"` // name of the metric
	// Rows: values over the whole run: one, or one per verb, member or result
	Rows    []KeyRow `json:"rows"`
	Missing string   `json:"missing,omitempty"` // why there are no rows
}

// KeyRow is one value of a key metric.
type KeyRow struct {
	Label string   `json:"label"` // verb, member or result of the attempt
	P50   *float64 `json:"p50Seconds,omitempty"`
	P95   *float64 `json:"p95Seconds,omitempty"`
	P99   *float64 `json:"p99Seconds,omitempty"`
	Value *float64 `json:"value,omitempty"` // increase of a counter
	Count float64  `json:"count"`           // number of observations
}

// ComponentCost holds the resources that one process used over the run, from its own
// process_* metrics.
type ComponentCost struct {
	Name           string  `json:"name"` // as etcd-0, kube-apiserver-0 or loadgen
	CPUSeconds     float64 `json:"cpuSeconds"`
	CPUShare       float64 `json:"cpuShare"` // share of all CPU seconds in the table
	MaxRSSBytes    float64 `json:"maxRSSBytes"`
	MaxDescriptors float64 `json:"maxDescriptors"`
}
