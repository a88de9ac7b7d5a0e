package alerts

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/metricnames"
)

var update = flag.Bool("update", false, "rewrite docs/reference/alerts.md")

const docFile = "../docs/reference/alerts.md"

// TestDoc keeps docs/reference/alerts.md equal to the rules.
func TestDoc(t *testing.T) {
	got := page(t)
	if *update {
		if err := os.WriteFile(docFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/alerts.md is not what the rules say: go test ./alerts -update")
	}
}

const docHead = `# Alerts

Prometheus rules for a production cluster or a run: load [alerts/](../../alerts) into any Prometheus
([how](../how-to/grafana-prometheus.md)). Each alert's annotations contain its [runbook](runbooks.md) (Means, Look at, Do) and the runbook's URL. To read a runbook:

    loadgen alerts -o json | jq -r '.[] | select(.alert == "EtcdNoLeader") | .runbook, .expr'

## Requirements

- The jobs kube-apiserver, etcd, kube-scheduler, kube-controller-manager and, during a run, loadgen. [Render](../how-to/grafana-prometheus.md#another-prometheus)
  the rules if your jobs have other names. Alerts keep a label ` + "`cluster`" + `, except alerts on absence: an absent series has no labels.
- Scrapes at most 30 s apart: the shortest range is 2 minutes.
- The [metrics](#metrics) below. MetricsMissing fires if a component answers without them.

## The alerts

Each alert is listed with its severity, its [incident](../incidents/README.md) (I1 to I11) and the smallest fault that fires it. ` + "`loadgen alerts`" + `
prints the [proof](../../loadgen/lab/records/proofs.md) of each.

An alert stays active after the fault has ended, because the range of its expression still contains the fault. The time of ` + "`for`" + ` starts only when
the range contains enough of the fault. For example, if a disk is slow for 18 s, EtcdWALFsyncSlow fires 72 s after the fault begins, for a
minute. Gates on alerts say how far back the rule looked ([alert gates](objectives.md#alert-gates)).
`

const docRules = `
## Design and tests

- **Thresholds lie on bucket boundaries.** A rule counts that "over 10% of fsyncs took over 8 ms". A p99 would be interpolated.
- **A missing series disables no rule.** No rule adds or compares with a series that may not exist. A rule also fires on a counter that
  appears only with its first event. Descriptors are compared with the limit of the last hour, because a process without a free descriptor
  cannot read its limit.
- **Tests.** [alerts/tests](../../alerts/tests) has for each alert a case that fires and a case that does not: ` + "`go test ./alerts`" + `, or
  ` + "`promtool test rules alerts/tests/*.yaml`" + `. [pint](https://github.com/cloudflare/pint) reports no problems. Metrics, labels and bucket boundaries are
  compared with the components' source.
- **Cost.** All rules every 15 s over a recorded hour of 5,000 nodes: 6.3 s of CPU, 0.2% of a core.
`

const (
	docScrape     = 5 * time.Second
	docEvaluation = 15 * time.Second
)

func page(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(docHead)
	var components []string
	byComponent := map[string][]Alert{}
	for _, a := range mustRules(t) {
		component := a.Labels["component"]
		if len(byComponent[component]) == 0 {
			components = append(components, component)
		}
		byComponent[component] = append(byComponent[component], a)
	}
	for _, component := range components {
		fmt.Fprintf(&b, "\n### Component %s\n\n", component)
		for _, a := range byComponent[component] {
			about := a.Labels["severity"]
			if a.Incident != "" {
				about += ", " + a.Incident
			}
			fmt.Fprintf(&b, "- **%s** (%s): %s\n", a.Alert, about, a.Smallest)
		}
	}
	b.WriteString(docRules)
	b.WriteString("\n## Recording rules\n\nDashboards also use these series.\n\n")
	var records []string
	for _, r := range allRules(t) {
		if r.Record != "" {
			records = append(records, r.Record)
		}
	}
	slices.Sort(records)
	b.WriteString("    " + strings.Join(slices.Compact(records), "\n    ") + "\n")
	b.WriteString("\n## Metrics\n\n")
	byType := map[string][]string{}
	for _, f := range metricnames.For(metricnames.Rules) {
		name := f.Name
		if len(f.Labels) > 0 {
			name += "{" + strings.Join(f.Labels, ",") + "}"
		}
		byType[f.Type] = append(byType[f.Type], name)
	}
	for i, kind := range slices.Sorted(maps.Keys(byType)) {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "Of type %s:\n\n    %s\n", kind, strings.Join(byType[kind], "\n    "))
	}
	return b.Bytes()
}
