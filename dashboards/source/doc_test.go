package source

import (
	"fmt"
	"slices"
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
	b.WriteString(movesHead)
	for _, c := range shown {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.what, c.by, strings.Join(movedBy(c.claim), "; "))
	}
	equal(t, "../../docs/dashboards.md", []byte(b.String()))
}

// movedBy is the panels that claim to show something, by dashboard.
func movedBy(claim string) []string {
	var all []string
	for _, d := range boards() {
		var titles []string
		for _, r := range d.rows {
			for _, p := range r.panels {
				if slices.Contains(p.moves, claim) {
					titles = append(titles, p.title)
				}
			}
		}
		if titles != nil {
			all = append(all, fmt.Sprintf("*%s*: %s", strings.TrimPrefix(d.title, "Stormglass / "), `"`+strings.Join(titles, `", "`)+`"`))
		}
	}
	return all
}

// shown is where each claim was seen to hold: scenarios, and proofs of alerts.
var shown = []struct{ claim, what, by string }{
	{"slowFsync", "slow fsync of etcd", "slow-fsync, slow-verbs; proofs slow-path, slow-disk"},
	{"diskContention", "a neighbour on etcd's disk", "stacked-etcd"},
	{"networkDelay", "slow links of etcd", "leader-changes; proofs peers, slow-path"},
	{"networkDelay etcd", "those between its members", "leader-changes; proof peers"},
	{"networkDelay kube-apiserver", "those from the API server", "proof slow-path"},
	{"partition", "a partition of etcd, from within or from its API server", "`dashboards/partition.yaml`"},
	{"partition etcd", "etcd's leader cut off from the other members", "`dashboards/partition.yaml`"},
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
	{"descriptorLimit kube-apiserver", "that of the API server", "proof lists"},
	{"etcdQuota", "etcd near its quota, then over it", "proof quota"},
	{"webhook slow", "a slow admission webhook, and too many creates", "proof webhook-slow"},
	{"webhook closed", "one that fails, with failurePolicy Fail", "proof webhook-fails"},
	{"webhook open", "one that fails, with failurePolicy Ignore", "proof webhook-fails"},
	{"nodeFailure", "nodes that fall silent", "node-loss, thundering-herd; proof nodes"},
	{"watches", "hundreds of watches", "proof watches"},
	{"watches slow", "watches that read too slowly", "proof watches"},
	{"changes", "writes that hundreds of watches see", "proof watches"},
	{"requests list", "lists of thousands of objects in a loop", "slow-verbs with many objects; proof lists"},
}

// TestShown: every claim has a run that has shown it, and every run a claim.
func TestShown(t *testing.T) {
	known := map[string]bool{}
	for _, c := range shown {
		known[c.claim] = true
		if movedBy(c.claim) == nil {
			t.Errorf("no panel is about %q", c.claim)
		}
	}
	for _, d := range boards() {
		for _, r := range d.rows {
			for _, p := range r.panels {
				for _, claim := range p.moves {
					if !known[claim] {
						t.Errorf("%s: %s: no run has shown %q", d.uid, p.title, claim)
					}
				}
			}
		}
	}
}

const movesHead = `
## What moves which panels

Each line was seen in the archives of these runs: ` + "`make panels RUN=DIR`" + `. Proofs are the runs of ` + "`loadgen alerts prove`" + `.

| what is done | shown by | panels |
|---|---|---|
`

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
- **Panels move.** A panel that is about a fault says so in proof.json, and [a table](#what-moves-which-panels) says which runs
  have shown it. Under the fault some line has to be elsewhere than before it, by a tenth of the panel's height and in nine
  of ten pairs of values (Mann and Whitney's U); or it was at rest and has a peak as high; or it was not there. The same
  command tells, and ` + "`go run ./loadgen/internal/report/panel/panels -calm RUN`" + ` what that is worth: at moments of three healthy runs at which
  nothing was done, 5, 9 and 15% of these panels are said to have moved. (Had a peak above all before been enough, it were 30%:
  a p99 of few requests jumps about by itself.) A panel that does not show its fault is told and is no error: a remedy may be
  what keeps it still.

## Without a Grafana

The HTML report of every run draws all panels from this JSON and the run's archive, below its own charts, folded up. That is
not Grafana: colours and axes are the report's, nothing can be chosen or zoomed, lines have at most 150 points and panels at
most 8 lines, and all of it together at most 1 MB; where a run would need more, lines get fewer points.
`
