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

// Proof describes the fault or load that must make an alert fire.
type Proof struct {
	// Name is the name of the alert.
	Name string
	// Incident is the incident that the alert detects ("I3"). Empty means that the alert serves all incidents.
	Incident string
	// Fault is the kind of fault that makes the alert fire: a fault of the bundled plane (package controlplane/control)
	// or of the simulated nodes (nodeFailure). It is empty if load alone, or a change to the monitoring, makes the
	// alert fire.
	Fault string
	// How describes the fault, and a size of the fault at which the alert must fire.
	How string
	// Run is the name of the run that proves that the alert fires. `loadgen alerts prove` starts this run.
	Run   string
	Cause `yaml:",inline"`
	// Window is the time from the beginning of a fault until the rule exceeds its threshold, without scrape and
	// evaluation intervals. The fault has the size in How. If the fault affects every observation and their rate stays
	// the same, Window is the threshold times the range of the rule. If a component measures at a fixed period, Window
	// is that period. Zero means that the first sample exceeds the threshold.
	Window time.Duration
	// Smallest is the calculated size of the smallest fault that makes the alert fire.
	Smallest string
	// Upstream is the threshold at which the kubernetes-mixin or the etcd-mixin alerts on the same problem, such as "at
	// a p99 over 0.5 s for 10 minutes". It is empty if neither mixin alerts on the problem.
	Upstream string
}

// Cause says when the cause of an alert begins in a run.
type Cause struct {
	// Phase is the phase of the run in which the cause begins. The cause is the first fault of the phase or, if no
	// fault begins in the phase, the phase itself.
	Phase string
	// Last reports whether the cause begins with the last fault of the phase instead of the first. It is for alerts on
	// the number of faults.
	Last bool
	// Since is a PromQL expression, or empty. The cause begins when the expression first has a result after the start
	// of the phase. Use it for faults whose effect is delayed, for example by a grace period.
	Since string
}

// Expected is an alert that a run must fire.
type Expected struct {
	Rule  string
	Cause `yaml:",inline"`
}

// Run describes a run of a scenario that proves that alerts fire.
type Run struct {
	Name string
	// Scenario is the name of the scenario to run. Empty means Name. `loadgen alerts prove` runs a scenario once, for
	// all Runs with this scenario.
	Scenario string
	// Expect lists the alerts that must fire. In the table, it contains only alerts whose Proof names another run. The
	// function Runs adds the alerts whose Proof names this run.
	Expect []Expected
	// Allow lists the alerts that may fire because they follow from the fault. They need not fire.
	Allow []struct {
		Rules []string
		Why   string
	}
	// Hide lists recorded series that the rules do not see.
	Hide []Hide
	// Stall pauses the load generator's process repeatedly during a phase.
	Stall Stall
}

// Hide hides series of the recorded data from the rules during a part of a phase. The part begins at the time After
// from the start of the phase, and lasts for the time For.
type Hide struct {
	// Job is the job whose series to hide. Family is the metric family to hide. One of the two is set.
	Job, Family string
	Phase       string
	After, For  time.Duration
}

// Stall pauses the load generator's process for the time For in each second of a phase. The zero value never pauses it.
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

// readTable reads the embedded table of proofs and runs. It panics if the table is invalid.
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
