// Package alertproof tests the alerts that Stormglass ships. A proof is a scenario that must make some alerts fire. The
// package evaluates all shipped rules over a run of the scenario. The run proves the alerts if:
//
//   - Each expected rule was neither firing nor pending when its cause began, fired within
//     1.5 times its floor (alerts.Alert.FiresWithin) after its cause, and resolved. It must
//     resolve in the run, or within 75 minutes after the run, during which every scrape
//     repeats the last one. Rules that look back an hour need this time.
//   - Every other rule stayed silent. Rules that follow from the fault may fire.
//
// A run proves nothing if it was cut short, missed a fault or had an unexpected exit. The same applies if its generator
// was saturated, unless this is the intended fault. The verdict is then no data.
package alertproof

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

//go:embed runs/*.yaml
var runs embed.FS

// Proof is a scenario with the alerts that must fire, may fire or must be silent when it runs.
type Proof struct{ alerts.Run }

// Stall stops the generator for a part of each second of a phase.
type Stall = alerts.Stall

// All returns the proofs, in the order of alerts.Runs.
func All() []Proof {
	var all []Proof
	for _, r := range alerts.Runs() {
		all = append(all, Proof{r})
	}
	return all
}

// ScenarioName returns the name of the scenario to run.
func (p Proof) ScenarioName() string { return cmp.Or(p.Scenario, p.Name) }

// Source returns the text of the scenario.
func (p Proof) Source() ([]byte, error) { return runs.ReadFile("runs/" + p.ScenarioName() + ".yaml") }

// Read returns the scenario. It fails if the scenario is invalid.
func (p Proof) Read() (*scenario.Scenario, error) {
	text, err := p.Source()
	if err != nil {
		return nil, fmt.Errorf("proof %s: %w", p.Name, err)
	}
	s, err := scenario.Parse(p.ScenarioName()+".yaml", text, nil)
	if err != nil {
		return nil, err
	}
	return s, gate.Check(s)
}

func (p Proof) expects(rule string) *alerts.Expected {
	if i := slices.IndexFunc(p.Expect, func(e alerts.Expected) bool { return e.Rule == rule }); i >= 0 {
		return &p.Expect[i]
	}
	return nil
}

// allows returns the reason why a rule may fire although the proof does not require it, or "" if the rule must be
// silent.
func (p Proof) allows(rule string) string {
	for _, a := range p.Allow {
		if slices.Contains(a.Rules, rule) {
			return a.Why
		}
	}
	return ""
}

func proofNames() []string {
	var all []string
	for _, p := range All() {
		all = append(all, p.Name)
	}
	return all
}

// Of returns the proofs that use a scenario.
func Of(scenario string) []Proof {
	return slices.DeleteFunc(All(), func(p Proof) bool { return p.ScenarioName() != scenario })
}

// Select returns the proofs with the given names, and the proofs in which the given rules must fire according to
// alerts.Table. Without names and rules, it returns all proofs.
func Select(names, rules []string) ([]Proof, error) {
	if len(names)+len(rules) == 0 {
		return All(), nil
	}
	wanted := map[string]bool{}
	known := proofNames()
	var rulesKnown []string
	by := map[string]string{}
	for _, a := range alerts.Table() {
		rulesKnown = append(rulesKnown, a.Name)
		by[a.Name] = a.Run
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--proof %s: no such proof (%s)", name, strictyaml.Hint(name, known, "known proofs: "+strings.Join(known, ", ")))
		}
		wanted[name] = true
	}
	for _, rule := range rules {
		if by[rule] == "" {
			return nil, fmt.Errorf("--rule %s: no such alert (%s)", rule, strictyaml.Hint(rule, rulesKnown, "`loadgen alerts` lists the alerts"))
		}
		wanted[by[rule]] = true
	}
	return slices.DeleteFunc(All(), func(p Proof) bool { return !wanted[p.Name] }), nil
}
