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

// Proof names what must fire an alert.
type Proof struct {
	// Name of the alert.
	Name string
	// Incident that it is about ("I3"); empty: it serves all of them.
	Incident string
	// Fault is its kind: one of the bundled plane's (package
	// controlplane/control) or of the simulated nodes' (nodeFailure). Empty
	// where load alone does it, or something is done to the monitoring itself.
	Fault string
	// How it is done, and the size at which the alert must fire.
	How string
	// Run is the proof that fires it, by name: `loadgen alerts prove` runs it.
	Run   string
	Cause `yaml:",inline"`
	// Window is how long a fault of that size lasts until the rule is over its
	// threshold, as far as the rule and its series determine it: the threshold's share
	// of the rule's range, where every observation is hit and as many came before; or
	// the period of a component's own measurement. Zero: the first sample is enough.
	Window time.Duration
	// Smallest is the smallest fault that fires it, by arithmetic.
	Smallest string
	// Upstream is where the kubernetes-mixin or the etcd-mixin begins to alert
	// on the same, empty if it does not.
	Upstream string
}

// Cause says when the cause of an alert begins in a run.
type Cause struct {
	// Phase in which it begins: with the first fault in that phase, or, if no fault
	// begins there, with the phase.
	Phase string
	// Last makes it the last fault of the phase: the fault that makes their number too
	// high.
	Last bool
	// Since is PromQL: the cause begins when it first gives something after the
	// phase's start, since the fault takes time to be one (a grace period).
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
	// Scenario to run; empty: the scenario with the name of the run. Two runs of one
	// scenario are judged from one recording.
	Scenario string
	// Expect are the alerts that must fire. The table lists those whose Proof names
	// another run.
	Expect []Expected
	// Allow are alerts that may fire, as they follow from the fault.
	Allow []struct {
		Rules []string
		Why   string
	}
	// Hide lists the recorded data that the rules do not read.
	Hide []Hide
	// Stall stops the generator's process while a phase lasts.
	Stall Stall
}

// Hide takes series out of the recorded data for a time in a phase.
type Hide struct {
	// Job whose series are hidden, or Family of metrics. One of them is set.
	Job, Family string
	Phase       string
	After, For  time.Duration
}

// Stall stops the generator for a part of each second of a phase. Zero: it does not.
type Stall struct {
	Phase string
	For   time.Duration
}

// Table is the proofs of all alerts.
func Table() []Proof { return readTable().Alerts }

// Runs are the scenarios that prove alerts, in the order of the table.
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

// readTable reads the embedded table, whose errors are the programmer's.
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
