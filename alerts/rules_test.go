package alerts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/controlplane/control"
)

func mustRules(t *testing.T) []Alert {
	t.Helper()
	all, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAnnotations checks that the description of each alert says what the alert means, what to look at and what to do,
// in this order.
func TestAnnotations(t *testing.T) {
	for _, a := range mustRules(t) {
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q", a.Alert, s)
		}
		if a.Labels["component"] == "" {
			t.Errorf("%s does not name its component", a.Alert)
		}
		for _, name := range []string{"summary", "description", "runbook", "runbook_url"} {
			if a.Annotations[name] == "" {
				t.Errorf("%s has no %s", a.Alert, name)
			}
		}
		steps := slices.Collect(strings.Lines(a.Annotations["runbook"]))
		begins := []string{"Means: ", "Look at: ", "Do: "}
		if len(steps) != len(begins) {
			t.Errorf("%s: the runbook has %d lines, want %d", a.Alert, len(steps), len(begins))
			continue
		}
		for i, b := range begins {
			if !strings.HasPrefix(steps[i], b) {
				t.Errorf("%s: line %d of the runbook does not begin with %q", a.Alert, i+1, b)
			}
		}
	}
}

// TestEveryAlertIsTested checks that each alert fires in one unit test and is silent in another, and that each rule
// file is evaluated without any data.
func TestEveryAlertIsTested(t *testing.T) {
	tests := map[string]bool{}
	for _, u := range readUnitTests(t) {
		for _, rules := range u.RuleFiles {
			for _, test := range u.Tests {
				tests[strings.TrimPrefix(rules, "../")+": "+test.Name] = true
			}
		}
	}
	for _, a := range mustRules(t) {
		for _, want := range []string{a.Alert + " fires", a.Alert + " is quiet", "absent data"} {
			if !tests[a.File+": "+want] {
				t.Errorf("%s has no unit test with the name %q", a.File, want)
			}
		}
	}
}

// TestTable checks that the kinds of fault are known, that each proof has a run and names the smallest fault, and that
// no window is longer than the ranges of its rule.
func TestTable(t *testing.T) {
	faults := append(control.FaultKinds(), control.NodeFailure)
	incidents := map[string]bool{}
	records := rulesByName(t)
	for _, a := range mustRules(t) {
		incidents[a.Incident] = true
		if a.How == "" {
			t.Errorf("%s: the table does not say how to fire it", a.Alert)
		}
		if a.Fault != "" && !slices.Contains(faults, a.Fault) {
			t.Errorf("%s: fault %q does not exist", a.Alert, a.Fault)
		}
		if a.Run == "" || a.Smallest == "" {
			t.Errorf("%s: proven by %q, smallest fault %q", a.Alert, a.Run, a.Smallest)
		}
		// Allow a little more than the range: the range starts to fill only with the first sample of the fault, or when
		// the component has noticed the fault.
		if all := ranges(t, a.Rule, records); a.Window > time.Minute && (len(all) == 0 || a.Window > slices.Max(all)+10*time.Second) {
			t.Errorf("%s: window %v, but the rule's ranges are %v", a.Alert, a.Window, all)
		}
	}
	for i := 1; i <= 11; i++ {
		if !incidents[fmt.Sprintf("I%d", i)] {
			t.Errorf("no alert names incident I%d", i)
		}
	}
}

// TestFloor checks FiresWithin, the time with which proofs compare the latency of an alert.
func TestFloor(t *testing.T) {
	for _, a := range mustRules(t) {
		if a.Alert == "EtcdWALFsyncSlow" {
			if got, want := a.FiresWithin(5*time.Second, 0), 92*time.Second; got != want {
				t.Errorf("floor of %s is %v, want %v", a.Alert, got, want)
			}
			if got, want := a.FiresWithin(2*time.Second, time.Second), 75*time.Second; got != want {
				t.Errorf("floor of %s evaluated each second is %v, want %v", a.Alert, got, want)
			}
			return
		}
	}
	t.Fatal("no EtcdWALFsyncSlow")
}

func allRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	loaded, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	var all []rulefmt.Rule
	for _, g := range loaded {
		all = append(all, g.Rules...)
	}
	return all
}

// rulesByName returns the recording rules by name. If several have the same name, it returns the first of them.
func rulesByName(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	records := map[string]rulefmt.Rule{}
	for _, r := range allRules(t) {
		if _, ok := records[r.Record]; !ok && r.Record != "" {
			records[r.Record] = r
		}
	}
	return records
}

func inspect(t *testing.T, expr string, visit func(*parser.VectorSelector, []parser.Node)) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			visit(s, path)
		}
		return nil
	})
}

// ranges returns the time ranges in a rule and in the recording rules that it reads.
func ranges(t *testing.T, r rulefmt.Rule, records map[string]rulefmt.Rule) []time.Duration {
	t.Helper()
	var all []time.Duration
	inspect(t, r.Expr, func(s *parser.VectorSelector, path []parser.Node) {
		if record, ok := records[s.Name]; ok {
			all = append(all, ranges(t, record, records)...)
		}
		for _, n := range path {
			if m, ok := n.(*parser.MatrixSelector); ok {
				all = append(all, m.Range)
			}
		}
	})
	return all
}
