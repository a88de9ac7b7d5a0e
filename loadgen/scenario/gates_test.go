package scenario

import (
	"strings"
	"testing"
)

const judgedLater = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: lab
phases:
  - {name: calm, for: 30s}
  - {name: storm, for: 30s}
gates:
  - {name: old, objective: unsent, max: 0%}
variants:
  - {name: one}
  - {name: two}
`

func TestWithGates(t *testing.T) {
	s, err := Parse("lab.yaml", []byte(judgedLater), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.WithGates("new.yaml", []byte("gates:\n  - {name: a, alert: EtcdNoLeader, fires: false}\n  - {name: b, objective: unsent, max: 1%, over: [storm]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Gates) != 2 || got.Gates[0].Alert != "EtcdNoLeader" || *got.Gates[0].Fires || len(got.Gates[0].Over) != 2 {
		t.Errorf("gates %+v", got.Gates)
	}
	if len(s.Gates) != 1 || s.Gates[0].Name != "old" {
		t.Errorf("the scenario's own gates became %+v", s.Gates)
	}
	// For a variant's run, gates of other variants are omitted.
	one, err := s.WithVariant("one")
	if err != nil {
		t.Fatal(err)
	}
	got, err = one.WithGates("new.yaml", []byte("gates:\n  - {name: a, objective: unsent, max: 1%, variants: [two]}\n  - {name: b, objective: unsent, max: 1%, variants: [one]}\n"))
	if err != nil || len(got.Gates) != 1 || got.Gates[0].Name != "b" {
		t.Errorf("of variant one: %+v, %v", got, err)
	}
}

// Errors name the file of the gates, not the scenario's.
func TestWithGatesErrors(t *testing.T) {
	s, err := Parse("lab.yaml", []byte(judgedLater), nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"gates: []\n": `new.yaml:1: gates: there are no gates (list gates under gates:, as in a scenario)`,
		"gates:\n  - {name: a, alert: EtcdNoLeader}\n":                                 `new.yaml:2: gates.a.alert: gate "a" does not say whether the alert must fire (add fires: true or fires: false)`,
		"gates:\n  - {name: a, fires: true}\n":                                         `new.yaml:2: gates.a.fires: gate "a" says whether an alert fires, but does not name the alert (name an alert of docs/reference/alerts.md)`,
		"gates:\n  - {name: a, alert: EtcdNoLeader, fires: true, max: 1}\n":            `new.yaml:2: gates.a.alert: gate "a" has both an alert and a bound, but an alert has no value (leave out max and min)`,
		"gates:\n  - {name: a, alert: EtcdNoLeader, fires: true, objective: unsent}\n": `new.yaml:2: gates.a.alert: gate "a" has both an alert and an objective or expr (write two gates)`,
		"gates:\n  - {name: a, alert: EtcdNoLeader, fires: true, load: x}\n":           `new.yaml:2: gates.a.alert: gate "a": an alert does not take a load or signal (leave out load and signal)`,
		"gates:\n  - {name: a, alert: EtcdNoLeader, fires: maybe}\n":                   `new.yaml:2: gates.a.fires:`,
		"gates:\n  - {name: a, alert: EtcdNoLeader, fires: true, over: [stom]}\n":      `new.yaml:2: gates.a.over[0]:`,
	} {
		_, err := s.WithGates("new.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s got  %v\nwant %s", text, err, want)
		}
	}
}

// The scenario of a finished run can be read even if a later version would refuse it.
// New gates that judge it must follow all rules.
func TestRecordedScenarioIsRead(t *testing.T) {
	const text = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: old
controlPlane: {apiServer: {flags: {gone-since: "1"}}}
background: [{name: r, kind: requests, verb: get, rate: 1/s, size: 1KiB, sizes: [{size: 2KiB, weight: 1}]}]
phases: [{name: a, until: podsReady, within: 1m}]
gates: [{name: g, objective: unsent, max: 5}]
`
	if _, err := Parse("old.yaml", []byte(text), nil); err == nil {
		t.Error("Parse accepts the old scenario")
	}
	s, err := ParseRecorded("old.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.WithGates("new.yaml", []byte("gates: [{name: g, objective: unsent, max: 1%}]\n"))
	if err != nil || !s.Recorded() || again.Recorded() {
		t.Errorf("%v; recorded %v and %v", err, s.Recorded(), again != nil && again.Recorded())
	}
}
