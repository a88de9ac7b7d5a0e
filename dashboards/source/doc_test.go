package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/dashboards"
)

// TestDoc keeps docs/reference/dashboards.md equal to the dashboards.
func TestDoc(t *testing.T) {
	all := allBoards(t)
	var b strings.Builder
	b.WriteString(docHead)
	for _, d := range all {
		fmt.Fprintf(&b, "\n## %s\n\n`%s`. %s\n", strings.TrimPrefix(d.Title, "Stormglass / "), d.UID, d.Tells)
	}
	equal(t, "../../docs/reference/dashboards.md", []byte(b.String()))
}

func allBoards(t *testing.T) []dashboards.Dashboard {
	t.Helper()
	all, err := dashboards.Load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// moved reports whether a panel lists claim in Moves.
func moved(all []dashboards.Dashboard, claim string) bool {
	for _, d := range all {
		for _, r := range d.Rows {
			if slices.ContainsFunc(r.Panels, func(p dashboards.Panel) bool { return slices.Contains(p.Moves, claim) }) {
				return true
			}
		}
	}
	return false
}

// shown lists, for each claim in Moves, the scenarios and proofs of alerts that have shown it.
var shown = []struct{ claim, what, by string }{
	{"slowFsync", "slow fsync of etcd", "slow-fsync, slow-verbs; proofs slow-path, slow-disk"},
	{"diskContention", "a neighbour on etcd's disk", "stacked-etcd"},
	{"networkDelay", "slow links of etcd", "leader-changes; proofs peers, slow-path"},
	{"networkDelay etcd", "links between its members", "leader-changes; proof peers"},
	{"networkDelay kube-apiserver", "links from the API server", "proof slow-path"},
	{"partition", "a partition of etcd", "`dashboards/partition.yaml`"},
	{"partition etcd", "its leader cut off from the other members", "`dashboards/partition.yaml`"},
	{"partition kube-apiserver", "an API server cut off from etcd", "`dashboards/partition.yaml`"},
	{"pause etcd", "etcd's leader frozen for 2 or 3 s", "leader-changes with default timers; proof peers"},
	{"kill", "a component killed", "component-loss; proof kills"},
	{"kill etcd", "etcd members killed", "component-loss, etcd-kills; proof quorum"},
	{"kill kube-apiserver", "an API server killed", "component-loss"},
	{"kill kube-scheduler", "the leading scheduler killed", "component-loss; proof kills"},
	{"kill kube-controller-manager", "the leading controller manager killed", "component-loss; proof kills"},
	{"restart", "a component restarted", "watch-storm"},
	{"restart kube-apiserver", "an API server restarted under watches", "watch-storm"},
	{"descriptorLimit", "a limit of descriptors lowered", "proof lists"},
	{"descriptorLimit kube-apiserver", "the API server's limit lowered", "proof lists"},
	{"etcdQuota", "etcd near its quota, then over it", "proof quota"},
	{"webhook slow", "a slow admission webhook, and too many creates", "proof webhook-slow"},
	{"webhook closed", "one that fails, with failurePolicy Fail", "proof webhook-fails"},
	{"webhook open", "one that fails, with failurePolicy Ignore", "proof webhook-fails"},
	{"service kms-plugin", "a KMS plugin that fails", "proof services"},
	{"service authorization-webhook", "an authorization webhook that fails, or is slow", "proof services"},
	{"service audit-webhook", "a backend of audit events that fails", "proof services"},
	{"service conversion-webhook", "a webhook that converts custom resources and fails", "proof conversion"},
	{"nodeFailure", "nodes that fall silent", "node-loss, thundering-herd; proof nodes"},
	{"watches", "hundreds of watches", "proof watches"},
	{"watches slow", "watches that read too slowly", "proof watches"},
	{"changes", "writes that hundreds of watches see", "proof watches"},
	{"requests list", "lists of thousands of objects in a loop", "slow-verbs with many objects; proof lists"},
}

// TestShown checks that each claim in Moves has a run that has shown it, and that `shown` lists no other claims.
func TestShown(t *testing.T) {
	all := allBoards(t)
	known := map[string]bool{}
	for _, c := range shown {
		known[c.claim] = true
		if !moved(all, c.claim) {
			t.Errorf("no panel shows %q", c.claim)
		}
	}
	for _, d := range all {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				for _, claim := range p.Moves {
					if !known[claim] {
						t.Errorf("%s: %s: no run has shown %q", d.UID, p.Title, claim)
					}
				}
			}
		}
	}
}

const docHead = `# Dashboards

Eight Grafana dashboards show a production cluster or a run of Stormglass. Import the files in
[dashboards/json](../../dashboards/json), or [provision them](../how-to/grafana-prometheus.md). Each panel's description says what it
shows and what to do when it looks wrong. If a panel is empty for a known reason, Grafana shows the reason. The HTML report of a run
has the same panels with the run's data.

## Requirements

- A Prometheus data source with the jobs and the [recording rules](alerts.md#recording-rules) that the [alerts](alerts.md#requirements) need.
- To mark phases and faults in the panels (only for runs): the load generator's metrics ` + "`stormglass_phase_active`" + `, ` + "`stormglass_fault_active`" + ` and
  ` + "`stormglass_fault_begin_timestamp_seconds`" + `.

The text below each heading begins with the dashboard's UID.
`
