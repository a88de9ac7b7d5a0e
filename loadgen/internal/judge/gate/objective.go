package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Objective is one built-in way to judge a run.
type Objective struct {
	// Name is the name that a gate writes after `objective:`.
	Name string
	// Unit of its value.
	Unit scenario.Unit
	// Expr is the PromQL of an objective that reads scraped metrics, empty for
	// one that the generator measured itself. $window is the length of the
	// window, $hours the same in hours but at least 1.
	Expr string
	// Default is the bound that its source states, or one to begin with, as
	// "max: 1s".
	Default string
	// Needs are the components (jobs) whose metrics it reads.
	Needs []string
	// Doc says what the value is, Source where it or its bound comes from.
	Doc    string
	Source string

	// spans: consecutive phases are one window. sums: windows are added up.
	spans, sums bool
	// quantile of the classic histogram that Expr reads; 0 for others.
	// buckets is the PromQL of its buckets.
	quantile float64
	buckets  string
	// gap says what the value is worth if a fault kept a target away.
	gap gapRule
	// measure takes the value from the generator's own measurements.
	measure func(evidence) finding
	// client: it is of the cluster as the generator saw it, so that the generator's
	// own delay may be part of it.
	client bool
	// signals: it is about the scenario's signals.
	signals bool
	// of which results of loads it is; 0 for those that need no load.
	of scenario.LoadResult
	// check says what a scenario lacks for it; empty for nothing.
	check func(*scenario.Scenario) (hint, lack string)
	// most is the largest value there can be; 0: that of its unit, if that has one.
	most float64
	// least is the smallest value there can be, in the unit.
	least float64
	// during lists the phases in which there can be something to measure; nil: all.
	during func(*scenario.Scenario) []string
}

// largest is the largest value that the objective can have, infinite for none.
func (o Objective) largest() float64 {
	switch {
	case o.most > 0:
		return o.most
	case o.Unit == scenario.Ratio:
		return 1
	}
	return math.Inf(1)
}

// Objectives lists the built-in objectives: first those of scraped metrics,
// then those the generator measures, then those of faults.
func Objectives() []Objective { return slices.Concat(scraped(), measured(), recovered()) }

func find(name string) *Objective {
	all := Objectives()
	if i := slices.IndexFunc(all, func(o Objective) bool { return o.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func names() []string {
	var all []string
	for _, o := range Objectives() {
		all = append(all, o.Name)
	}
	return all
}

// unless gives what a scenario lacks for an objective, and how to add it; nothing if it
// is there.
func unless(there bool, hint, lack string) (string, string) {
	if there {
		return "", ""
	}
	return hint, lack
}

func needsNodes(s *scenario.Scenario) (hint, lack string) {
	return unless(s.Nodes.Count > 0, "set nodes.count", "there are no simulated nodes")
}

func needsNodeFailure(s *scenario.Scenario) (hint, lack string) {
	return unless(slices.ContainsFunc(s.Phases, failsNodes),
		"add faults: [{kind: nodeFailure, fraction: 0.3}] to a phase", "no node fails in this scenario")
}

func needsFault(s *scenario.Scenario) (hint, lack string) {
	return unless(len(withFault(s)) > 0,
		"add faults: [{kind: kill, component: etcd-0, for: 5s}] to a phase", "no fault of the control plane in this scenario")
}

func needsMembers(s *scenario.Scenario) (hint, lack string) {
	if hint, lack = needsFault(s); lack != "" {
		return hint, lack
	}
	return unless(s.Recorded() || s.ControlPlane.Count(control.KindEtcd) > 1,
		"set controlPlane.etcd.members: 3", "with one etcd member no other can lead")
}

func needsSignals(s *scenario.Scenario) (hint, lack string) {
	return unless(len(s.Signals) > 0,
		"add signals: [{name: fsync, expr: ..., steady: [...], under: [...]}]", "the scenario has no signals")
}

func needsPods(s *scenario.Scenario) (hint, lack string) {
	if s.Recorded() {
		return "", ""
	}
	deploy := "add actions: [{kind: deploy, name: web, replicas: 100}] to a phase"
	if s.Nodes.Count == 0 {
		deploy = "set nodes.count, and " + deploy
	}
	if hint, lack = unless(len(s.StartsPods()) > 0, deploy, "nothing is deployed in this scenario"); lack != "" {
		return hint, lack
	}
	return unless(s.Nodes.Count > 0, "set nodes.count", "no pod starts: there are no simulated nodes")
}

func sinceFailing(s *scenario.Scenario) []string {
	if i := slices.IndexFunc(s.Phases, failsNodes); i >= 0 {
		return s.PhaseNames()[i:]
	}
	return nil
}

func withFault(s *scenario.Scenario) []string {
	var all []string
	for _, f := range s.Faults() {
		if !f.OfNodes() && !slices.Contains(all, f.Phase) {
			all = append(all, f.Phase)
		}
	}
	return all
}

// leastLatency is less than anything takes that goes through a socket or to a disk, in
// seconds. A p99 of scraped buckets is longer still: it is interpolated from 0 to
// the edge of the first one.
const leastLatency = 10e-6

// longest is the length of the longest phase there can be, in seconds.
const longest = 24 * 3600

// impossible says why a gate with that bound could not fail, or not pass. op is
// "<=" for max and ">=" for min. Nothing is known of an expr.
func (o Objective) impossible(b *scenario.Bound, op string) (hint, wrong string) {
	if o.Name == "expr" {
		return "", ""
	}
	most, upTo := o.largest(), "at most"
	if op == "<=" {
		upTo = "less than"
	}
	switch {
	case b.Value < 0:
		return "write 0 or more, as " + o.Unit.Example(), fmt.Sprintf("%s is below 0, and %s never is", b, o.Name)
	case b.Value > most && o.Unit == scenario.Ratio && b.Value <= 100 && b.Fits(scenario.Count):
		return fmt.Sprintf("write %g%% or %g", b.Value, b.Value/100), fmt.Sprintf("%s is %g%%, and %s is at most 100%%", b, b.Value*100, o.Name)
	case b.Value > most && o.Unit == scenario.Ratio:
		return upTo + " 100%", fmt.Sprintf("%s is over 100%%, and %s never is", b, o.Name)
	case b.Value > most && !math.IsInf(most, 1):
		return fmt.Sprintf("%s %g", upTo, most), fmt.Sprintf("%s is over %g, and %s never is", b, most, o.Name)
	case o.Unit == scenario.Count && b.Value != math.Trunc(b.Value):
		return fmt.Sprintf("write %g or %g", math.Floor(b.Value), math.Ceil(b.Value)), fmt.Sprintf("%s is no whole number, and %s is a count", b, o.Name)
	case o.Unit == scenario.Seconds && b.Value > longest:
		return "at most 24h, as the longest phase", fmt.Sprintf("%s is longer than any phase", b)
	case op == "<=" && b.Value >= most:
		return "write less, or leave the gate out", fmt.Sprintf("%s is never over %s: the gate cannot fail", o.Name, b)
	case op == ">=" && b.Value <= o.least:
		return "write more, or leave the gate out", fmt.Sprintf("%s is never under %s: the gate cannot fail", o.Name, b)
	case op == "<=" && b.Value < o.least:
		return "write more; to begin with, " + o.Default, fmt.Sprintf("%s is never %s or less: the gate cannot pass", o.Name, b)
	}
	return "", ""
}

// contradictions finds pairs of gates on one value that cannot both pass.
func contradictions(s *scenario.Scenario, all []Compiled) []error {
	var errs []error
	for i, c := range all {
		if c.alert != nil {
			errs = append(errs, contradictingAlerts(s, c, all[:i])...)
			continue
		}
		for _, other := range all[:i] {
			same := other.alert == nil && c.Objective == other.Objective && canonical(c.Expr) == canonical(other.Expr) && c.Load == other.Load && c.Signal == other.Signal && sameSet(c.Over, other.Over)
			low, high := c, other
			if c.op == "<=" {
				low, high = other, c
			}
			if same && c.op != other.op && low.bound > high.bound {
				field, hint := "min", fmt.Sprintf("write at most %s", high.Max)
				if c.op == "<=" {
					field, hint = "max", fmt.Sprintf("write at least %s", low.Min)
				}
				if _, vain := c.objective.impossible(high.Max, ">="); field == "min" && vain != "" {
					hint = "leave one of them out"
				} else if _, vain := c.objective.impossible(low.Min, "<="); field == "max" && vain != "" {
					hint = "leave one of them out"
				}
				errs = append(errs, s.Errorf("gates."+c.Name+"."+field, hint, "gate %q asks for %s or more and gate %q for %s or less: both cannot pass", low.Name, low.Min, high.Name, high.Max))
			}
		}
	}
	return errs
}

// contradictingAlerts finds gates by which an alert must fire and must not in the same phases.
func contradictingAlerts(s *scenario.Scenario, c Compiled, before []Compiled) []error {
	for _, other := range before {
		if other.alert == nil || other.Alert != c.Alert || other.alert.fires == c.alert.fires {
			continue
		}
		fires, silent := c, other
		if other.alert.fires {
			fires, silent = other, c
		}
		if !slices.ContainsFunc(fires.Over, func(p string) bool { return !slices.Contains(silent.Over, p) }) {
			return []error{s.Errorf("gates."+c.Name+".fires", "name other phases in over", "gates %q and %q ask that %s fires and that it does not: both cannot pass", other.Name, c.Name, c.Alert)}
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	in := func(of []string) func(string) bool { return func(x string) bool { return !slices.Contains(of, x) } }
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

// isGate tells the path of a gate from that of a figure, which has no bound.
func isGate(path string) bool { return strings.HasPrefix(path, "gates.") }

// unattainable refuses what the phases and signals that a gate is about cannot give.
func (c *Compiled) unattainable(s *scenario.Scenario, path string) error {
	if s.Recorded() || !isGate(path) {
		return nil
	}
	for _, name := range c.Over {
		if p := s.Phase(name); c.objective.Name == "phase-duration" && c.op == "<=" && p.For.D().Seconds() > c.bound {
			return s.Errorf(path+".max", fmt.Sprintf("more than %s", p.For), "phase %q lasts %s", name, p.For)
		} else if c.objective.Name == "phase-duration" && c.op == ">=" && p.Until == "" && p.For.D().Seconds() < c.bound {
			return s.Errorf(path+".min", fmt.Sprintf("at most %s, or a longer phase", p.For), "phase %q lasts %s", name, p.For)
		} else if c.objective.Name == "phase-duration" && c.op == ">=" && p.Until != "" && p.Within.D().Seconds() < c.bound {
			return s.Errorf(path+".min", fmt.Sprintf("at most %s, or a longer within", p.Within), "phase %q ends after %s, met or not", name, p.Within)
		}
	}
	for _, signal := range s.Signals {
		if c.objective.Name == "signal-returned" && len(signal.After) == 0 && (c.Signal == "" || c.Signal == signal.Name) {
			return s.Errorf(path+".objective", fmt.Sprintf("add after: to signal %q, or name another with signal:", signal.Name), "signal %q names no phases after the fault", signal.Name)
		}
	}
	return nil
}
