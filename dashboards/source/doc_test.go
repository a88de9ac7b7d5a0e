package source

import (
	"fmt"
	"strings"
	"testing"
)

// TestDoc keeps docs/dashboards.md equal to the dashboards.
func TestDoc(t *testing.T) {
	var b strings.Builder
	b.WriteString(docHead)
	for _, d := range boards() {
		fmt.Fprintf(&b, "\n## %s\n\n`%s`. %s\n", strings.TrimPrefix(d.title, "Stormglass / "), d.uid, d.tells)
		for _, r := range d.rows {
			fmt.Fprintf(&b, "\n| %s | shows | do |\n|---|---|---|\n", r.title)
			for _, p := range r.panels {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", p.title, p.tells, p.do)
			}
		}
	}
	equal(t, "../../docs/dashboards.md", []byte(b.String()))
}

const docHead = `# Dashboards

Eight Grafana dashboards, for a production cluster as for a run of Stormglass. [dashboards/json](../dashboards/json) has
the files that a Grafana imports or provisions; they are written by [dashboards/source](../dashboards/source) with Grafana's
own SDK, one Go file each. This page is written by the program: ` + "`go test ./dashboards/source -update`" + `.

## What they expect

- A Prometheus data source with the jobs kube-apiserver, etcd, kube-scheduler, kube-controller-manager and, beside a run,
  loadgen. Relabel yours, if they have other names. A label ` + "`cluster`" + ` is used where there is one.
- The recording rules of [alerts/](../alerts): panels that show what an alert is about read the same series as the alert.
- The variables are the data source, the cluster (all, or one) and the component's instances. The links at the top lead to
  the other dashboards for the same data source, cluster and time, and all instances: one component's are not another's.
- Phases and faults of a run are annotations on every dashboard: ` + "`stormglass_phase_active`" + `, ` + "`stormglass_fault_active`" + ` and
  ` + "`stormglass_fault_begin_timestamp_seconds`" + `, which the load generator exports.

## How they are held to it

- **Conventions.** A test reads the JSON: every panel has a description that says what to do, a unit, thresholds from low to
  high, the chosen data source, its own ID and its own place; every query parses, chooses cluster and instance, names metrics
  and labels that the pinned versions of Kubernetes and etcd declare (read from their source), and takes the rate of counters only.
- **Every panel has data.** ` + "`make panels RUN=runs/TIME-NAME`" + ` asks every query of the archive of a run. Each must answer with
  finite numbers, or have a reason for being empty, and each reason names a query that would refute it: "a single etcd member
  has no peers" does not hold in a recording with two members. [dashboards/proof.json](../dashboards/proof.json) has them, and
  where a panel may be wholly empty Grafana shows the reason instead of "No data". A recording holds no recording rules, so
  their expressions are put in the place of their names.
- **Panels move.** A panel that is about a fault says so in proof.json. In a run with that fault the middle of some line has
  to move by a tenth of the panel's height, or its peak to leave the range that it had by as much. The same command tells.

## Without a Grafana

The HTML report of every run draws all panels from this JSON and the run's archive, below its own charts, folded up. That is
not Grafana: colours and axes are the report's, nothing can be chosen or zoomed, lines have at most 150 points and panels at
most 8 lines, and all of it together at most 1 MB; where a run would need more, lines get fewer points.
`
