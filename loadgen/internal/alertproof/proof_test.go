package alertproof

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Every alert is expected by the proof that the table of alerts names for it, and proofs expect only alerts that exist.
func TestEveryAlertHasAProof(t *testing.T) {
	expected := map[string][]string{}
	known := map[string]bool{}
	for _, p := range alerts.Table() {
		known[p.Name] = true
	}
	for _, p := range All() {
		for _, e := range p.Expect {
			expected[e.Rule] = append(expected[e.Rule], p.Name)
		}
		for _, a := range p.Allow {
			if a.Why == "" {
				t.Errorf("%s allows %v without a reason", p.Name, a.Rules)
			}
			for _, rule := range a.Rules {
				if !known[rule] || p.expects(rule) != nil {
					t.Errorf("%s allows %s, which is not an alert or is expected there", p.Name, rule)
				}
			}
		}
	}
	for _, p := range alerts.Table() {
		if !slices.Contains(expected[p.Name], p.Run) {
			t.Errorf("%s is proven by %s, say the alerts; the proofs that expect it are %v", p.Name, p.Run, expected[p.Name])
		}
		delete(expected, p.Name)
	}
	for rule, by := range expected {
		t.Errorf("%v expect %s, which is not an alert", by, rule)
	}
}

// Each scenario is valid and has the phases that its proof names. Its gates require the alerts that the proof expects,
// so a user can also run the scenario directly.
func TestScenarios(t *testing.T) {
	used := map[string]bool{}
	for _, p := range All() {
		used["runs/"+p.ScenarioName()+".yaml"] = true
		s, err := p.Read()
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if s.Name != p.ScenarioName() {
			t.Errorf("%s has the name %s", p.ScenarioName(), s.Name)
		}
		if slices.Contains(scenario.Names(), s.Name) {
			t.Errorf("the catalogue also has a scenario %s, so the test cannot distinguish their runs", s.Name)
		}
		phases := []string{p.Stall.Phase}
		for _, e := range p.Expect {
			phases = append(phases, e.Phase)
			if len(p.Hide) == 0 && p.Stall == (Stall{}) && !slices.ContainsFunc(s.Gates, func(g scenario.Gate) bool { return g.Alert == e.Rule && *g.Fires }) && primary(e.Rule) == p.Name {
				t.Errorf("%s: no gate requires that %s fires", p.Name, e.Rule)
			}
		}
		for _, h := range p.Hide {
			phases = append(phases, h.Phase)
			if length := s.Phase(h.Phase).For.D(); h.After+h.For > length {
				t.Errorf("%s hides something until %v after the start of %s, which lasts %v", p.Name, h.After+h.For, h.Phase, length)
			}
			if (h.Job == "") == (h.Family == "") {
				t.Errorf("%s hides %+v: a job or a family", p.Name, h)
			}
		}
		for _, name := range phases {
			if name != "" && s.Phase(name) == nil {
				t.Errorf("%s names phase %s, which its scenario does not have", p.Name, name)
			}
		}
		for _, g := range s.Gates {
			if g.Alert != "" && *g.Fires && p.expects(g.Alert) == nil && p.Scenario == "" {
				t.Errorf("%s: a gate requires %s to fire, but the proof does not", p.Name, g.Alert)
			}
		}
	}
	files, err := fs.Glob(runs, "runs/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !used[f] {
			t.Errorf("no proof uses %s", f)
		}
	}
}

// primary returns the proof that the table of alerts names for a rule.
func primary(rule string) string {
	for _, p := range alerts.Table() {
		if p.Name == rule {
			return p.Run
		}
	}
	return ""
}

// The run lasts at least 1.5 times the floor of a rule after the rule's cause, so that the rule can fire in time.
// Phases with a condition count as zero.
func TestCausesLast(t *testing.T) {
	all, err := alerts.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range All() {
		s, err := p.Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			e := p.expects(a.Alert)
			if e == nil || e.Since != "" {
				continue
			}
			left, at := time.Duration(0), -1
			for i, phase := range s.Phases {
				if phase.Name == e.Phase {
					at = i
				}
				if at >= 0 {
					left += phase.For.D()
				}
			}
			begins := time.Duration(0)
			if faults := s.Phases[at].Faults; len(faults) > 0 {
				times := faults[0].Times()
				begins = times[0]
				if e.Last {
					begins = times[len(times)-1]
				}
			}
			if need := time.Duration(Bound * float64(a.FiresWithin(s.Record.Interval.D(), 0))); left-begins < need {
				t.Errorf("%s: %s may take %v from its cause, and the run ends %v after it", p.Name, a.Alert, need, left-begins)
			}
		}
	}
}

// The healthy proof lasts at least as long as the longest other proof. This holds separately for planes with one etcd
// member and with several.
func TestHealthyRunsAreAsLong(t *testing.T) {
	length := func(p Proof) (time.Duration, bool) {
		s, err := p.Read()
		if err != nil {
			t.Fatal(err)
		}
		var all time.Duration
		for _, phase := range s.Phases {
			all += phase.For.D()
		}
		return all, s.ControlPlane.Etcd.Members > 1
	}
	longest := map[bool]time.Duration{}
	healthy := map[bool]time.Duration{}
	for _, p := range All() {
		d, several := length(p)
		if len(p.Expect) == 0 {
			healthy[several] = d
		} else if p.Scenario == "" {
			longest[several] = max(longest[several], d)
		}
	}
	for _, several := range []bool{false, true} {
		if healthy[several] < longest[several] {
			t.Errorf("with several members %v: the healthy run lasts %v, the longest proof %v", several, healthy[several], longest[several])
		}
	}
	if healthy[false] < 9*time.Minute+40*time.Second { // plus two phases with conditions
		t.Errorf("the healthy run lasts %v, want 10 minutes", healthy[false])
	}
}

func TestSelect(t *testing.T) {
	names := func(all []Proof, err error) string {
		if err != nil {
			return err.Error()
		}
		var n []string
		for _, p := range all {
			n = append(n, p.Name)
		}
		return strings.Join(n, " ")
	}
	if got := names(Select([]string{"healthy-ha"}, []string{"TargetDown", "EtcdWALFsyncSlow"})); got != "slow-path kills healthy-ha" {
		t.Errorf("selected %s", got)
	}
	if got := names(Select(nil, []string{"EtcdWalFsyncSlow"})); got != `--rule EtcdWalFsyncSlow: no such alert (did you mean "EtcdWALFsyncSlow"?)` {
		t.Errorf("an unknown rule: %s", got)
	}
	if got := names(Select([]string{"quorom"}, nil)); got != `--proof quorom: no such proof (did you mean "quorum"?)` {
		t.Errorf("an unknown proof: %s", got)
	}
	if len(Of("healthy")) != 2 || len(Of("rollout-500")) != 0 {
		t.Errorf("a healthy run is for %d proofs, another for %d", len(Of("healthy")), len(Of("rollout-500")))
	}
}
