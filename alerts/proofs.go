package alerts

import (
	"bytes"
	_ "embed"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed proofs/table.yaml
var proofTable []byte

// Proof describes what must fire an alert.
type Proof struct {
	// Name is the name of the alert.
	Name string
	// Incident is the incident that the alert is about ("I3"). Empty means that the alert serves all incidents.
	Incident string
	// Fault is the kind of fault: one of the bundled plane (package controlplane/control) or of the simulated nodes
	// (nodeFailure). It is empty if load alone fires the alert, or a change to the monitoring itself does.
	Fault string
	// How describes the fault, and the size at which the alert must fire.
	How string
	// Run is the name of the proof that fires the alert; `loadgen alerts prove` runs it.
	Run   string
	Cause `yaml:",inline"`
	// Window is the time from the beginning of a fault of that size until the rule exceeds its threshold, as far as the rule
	// and its series determine it. It is the threshold times the range of the rule, if the fault affects every observation and
	// their rate stays the same; or the period at which a component itself measures. Zero means that the first sample is
	// enough.
	Window time.Duration
	// Smallest is the calculated size of the smallest fault that fires the alert.
	Smallest string
	// Upstream says when the kubernetes-mixin or the etcd-mixin alerts on the same problem, such as "at a p99 over 0.5 s for 10
	// minutes". It is empty if neither does.
	Upstream string
}

// Cause says when the cause of an alert begins in a run.
type Cause struct {
	// Phase is the phase in which the cause begins: with the first fault of the phase, or with the phase itself if no fault
	// begins in it.
	Phase string
	// Last makes the cause begin with the last fault of the phase instead, which makes the number of faults too high.
	Last bool
	// Since is a PromQL expression, or empty. The cause begins when the expression first has a result after the start of the
	// phase. It is for faults that have an effect only after some time, such as a grace period.
	Since string
}

// Expected is an alert that a run must fire.
type Expected struct {
	Rule  string
	Cause `yaml:",inline"`
}

// Run is a scenario that proves alerts.
type Run struct {
	Name string
	// Scenario is the scenario to run. Empty means the scenario with the name of the run. Two runs of the same scenario are
	// judged from one recording.
	Scenario string
	// Expect lists the alerts that must fire. The table lists only alerts whose Proof names another run; Runs adds the alerts
	// whose Proof names this run.
	Expect []Expected
	// Allow lists alerts that may fire, because they follow from the fault.
	Allow []struct {
		Rules []string
		Why   string
	}
	// Hide lists the recorded data that the rules do not read.
	Hide []Hide
	// Stall stops the generator's process while a phase lasts.
	Stall Stall
}

// Hide removes series from the recorded data during a part of a phase: from After its start, for the time For.
type Hide struct {
	// Job is the job whose series are hidden. Family is the metric family that is hidden. One of the two is set.
	Job, Family string
	Phase       string
	After, For  time.Duration
}

// Stall stops the generator for the time For in each second of a phase. The zero value does not stop it.
type Stall struct {
	Phase string
	For   time.Duration
}

// Table returns the proofs of all alerts.
func Table() []Proof { return readTable().Alerts }

// Runs returns the runs that prove alerts, in the order of the table.
func Runs() []Run {
	t := readTable()
	for i, r := range t.Runs {
		for _, a := range t.Alerts {
			if a.Run == r.Name {
				t.Runs[i].Expect = append(t.Runs[i].Expect, Expected{a.Name, a.Cause})
			}
		}
	}
	return t.Runs
}

// readTable reads the embedded table. It panics if the table is invalid.
func readTable() (t struct {
	Alerts []Proof
	Runs   []Run
}) {
	d := yaml.NewDecoder(bytes.NewReader(proofTable))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil {
		panic(fmt.Sprintf("alerts/proofs/table.yaml: %v", err))
	}
	return t
}
