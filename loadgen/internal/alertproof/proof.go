package alertproof

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

//go:embed runs/*.yaml
var runs embed.FS

// Proof is a scenario and what it must do to the alerts.
type Proof struct {
	// Name of the proof, by which results and alerts.Table refer to it.
	Name string
	// Scenario that is run; empty: the one of the proof's name. Two proofs of one
	// scenario take one run.
	Scenario string
	// Expect are the rules that must fire.
	Expect []Expected
	// Allow are those that may.
	Allow []Allowed
	// Hide lists the recorded data that the rules do not read.
	Hide []Hide
	// Stall stops the generator's process while a phase lasts.
	Stall Stall
}

// Expected is a rule that must fire.
type Expected struct {
	Rule string
	// Phase in which its cause begins: with the first fault that begins there; where
	// none does, with the phase.
	Phase string
	// Last makes it the last fault of the phase: the one that makes it too many.
	Last bool
	// Since is PromQL: the cause begins when it first gives something after the
	// phase's start, since the fault takes time to be one (a grace period).
	Since string
}

// Allowed are rules that may fire, as they follow from the fault.
type Allowed struct {
	Rules []string
	Why   string
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

// ScenarioName is that of the scenario to run.
func (p Proof) ScenarioName() string {
	if p.Scenario == "" {
		return p.Name
	}
	return p.Scenario
}

// Source is the text of the scenario.
func (p Proof) Source() ([]byte, error) { return runs.ReadFile("runs/" + p.ScenarioName() + ".yaml") }

// Read is the scenario, checked with its gates.
func (p Proof) Read() (*scenario.Scenario, error) {
	text, err := p.Source()
	if err != nil {
		return nil, fmt.Errorf("proof %s: %w", p.Name, err)
	}
	s, err := scenario.Parse(p.ScenarioName()+".yaml", text, nil)
	if err != nil {
		return nil, err
	}
	_, err = gate.Compile(s)
	return s, err
}

// expects is the place of a rule in Expect, or nil.
func (p Proof) expects(rule string) *Expected {
	for i := range p.Expect {
		if p.Expect[i].Rule == rule {
			return &p.Expect[i]
		}
	}
	return nil
}

// allows says why a rule may fire; empty: it must not.
func (p Proof) allows(rule string) string {
	for _, a := range p.Allow {
		if slices.Contains(a.Rules, rule) {
			return a.Why
		}
	}
	return ""
}

// Of are the proofs that a run of a scenario is for.
func Of(scenario string) []Proof {
	var all []Proof
	for _, p := range All() {
		if p.ScenarioName() == scenario {
			all = append(all, p)
		}
	}
	return all
}

// Select are the proofs of these names, and for each of these rules the one that
// alerts.Table names. Without any it is all of them.
func Select(names, rules []string) ([]Proof, error) {
	if len(names)+len(rules) == 0 {
		return All(), nil
	}
	wanted := map[string]bool{}
	var known, rulesKnown []string
	for _, p := range All() {
		known = append(known, p.Name)
	}
	by := map[string]string{}
	for _, a := range alerts.Table() {
		rulesKnown = append(rulesKnown, a.Name)
		by[a.Name] = a.Run
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--proof %s: no such proof (%s)", name, hint(name, known, "there are "+strings.Join(known, ", ")))
		}
		wanted[name] = true
	}
	for _, rule := range rules {
		if by[rule] == "" {
			return nil, fmt.Errorf("--rule %s: no such alert (%s)", rule, hint(rule, rulesKnown, "`loadgen alerts` lists them"))
		}
		wanted[by[rule]] = true
	}
	var all []Proof
	for _, p := range All() {
		if wanted[p.Name] {
			all = append(all, p)
		}
	}
	return all, nil
}

// hint is the nearest name, or else what lists them.
func hint(name string, known []string, list string) string {
	if near := strictyaml.Suggest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return list
}
