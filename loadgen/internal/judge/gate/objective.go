package gate

import (
	"math"
	"slices"

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
	// own delay may be part of it (generator.go).
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
