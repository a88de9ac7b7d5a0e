package gate

import (
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

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
