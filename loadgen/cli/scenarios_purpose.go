package cli

import (
	"path"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// purpose is a group of built-in scenarios that serve the same purpose.
type purpose struct {
	title string
	names []string // names of the scenarios, sorted
}

// purposes lists the purposes in order, with patterns (path.Match) for the names of their scenarios.
var purposes = []struct{ title, patterns string }{
	{"Getting started", "rollout-demo replay-demo"},
	{"Load and scale tests", "rollout-500 node-failure-storm watch-flood watch-flood-20000 api-mix object-churn nodes-5000"},
	{"Incidents and their remedies", "fd-exhaustion stacked-etcd slow-fsync scheduler-scale thundering-herd leader-changes slow-verbs watch-storm " +
		"rollout-hops node-loss component-loss etcd-kills etcd-restore noisy-neighbour crd-flood workloads-node-loss kms-outage token-webhook-down " +
		"webhook-in-front aggregated-api-down audit-backend-blocked audit-disk-full conversion-webhook-down hpa-storm cloud-*"},
	{"Upgrades and rotations", "upgrade-rollout upgrade-rollback version-skew key-rotation"},
	{"Cost of a feature or setting", "request-path rbac-scale object-states crash-loops unschedulable-backlog preemption-storm " +
		"scheduler-extender scheduler-profiles device-allocation gangs"},
	{"Comparison and capacity", "ci-gate capacity-*"},
	{"Feature gates, off and on", "features/*"},
}

// byPurpose returns the built-in scenarios by purpose.
func byPurpose() (all []purpose) {
	for _, p := range purposes {
		group := purpose{title: p.title}
		for _, name := range scenario.Names() {
			for _, pattern := range strings.Fields(p.patterns) {
				if match, _ := path.Match(pattern, name); match { // the error is ignored: a test checks every pattern
					group.names = append(group.names, name)
				}
			}
		}
		all = append(all, group)
	}
	return all
}
