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
		t.Error("docs/reference/alerts.md differs from the rules: run go test ./alerts -update")
	}
}

const docHead = `# Alerts

Prometheus rules for a production cluster or a run. Load [alerts/](../../alerts) into any Prometheus
([how](../how-to/grafana-prometheus.md)). To read an alert's [runbook](runbooks.md) and expression:

    loadgen alerts -o json | jq -r '.[] | select(.alert == "EtcdNoLeader") | .runbook, .expr'

## Requirements

- The jobs kube-apiserver, etcd, kube-scheduler, kube-controller-manager and, if they exist, cloud-controller-manager and loadgen. If your jobs have other names,
  [render](../how-to/grafana-prometheus.md#another-prometheus) the rules. Alerts keep the label ` + "`cluster`" + `, except TargetAbsent, which has only the label job.
- A scrape interval of at most 30 s, because the shortest range of a rate is 2 minutes.
- The [metrics](#metrics) below. MetricsMissing fires if a component answers without them.

## The alerts

[Runbooks](runbooks.md) describes each alert. ` + "`loadgen alerts`" + ` lists the alerts with the run that [proves](../../loadgen/lab/records/proofs.md) each.

The time of an alert's ` + "`for`" + ` starts when the range of its expression contains enough of the fault. The alert stays active after the fault, while the range
still contains enough of it. For example, if a disk is slow for 18 s, EtcdWALFsyncSlow fires 72 s later, for a
minute. [Gates on alerts](objectives.md#alert-gates) say how far back the rule looked.

| component | critical | warning |
|---|---|---|
`

const docRules = `
## Design and tests

- **Thresholds lie on bucket boundaries.** A rule such as "over 10% of the fsyncs took over 8 ms" is exact; a p99 would be interpolated.
- **A missing series disables no rule.** No rule adds or compares with a series that may not exist. Rules also count the first event of a counter that
  appears with this event. Descriptors are compared with the limit of the last hour, because a process without a free descriptor
  cannot read its limit.
- **Tests.** [alerts/tests](../../alerts/tests) has two cases for each alert, one that fires and one that does not: ` + "`go test ./alerts`" + ` or
  ` + "`promtool test rules alerts/tests/*.yaml`" + `. [pint](https://github.com/cloudflare/pint) reports no problems.
- **Cost.** Evaluating all rules every 15 s over a recorded hour of 5,000 nodes took 6.3 s of CPU, 0.2% of a core.
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
		bySeverity := map[string][]string{}
		for _, a := range byComponent[component] {
			severity := a.Labels["severity"]
			bySeverity[severity] = append(bySeverity[severity], fmt.Sprintf("[%s](runbooks.md#%s)", a.Alert, strings.ToLower(a.Alert)))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", component, strings.Join(bySeverity["critical"], ", "), strings.Join(bySeverity["warning"], ", "))
	}
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
	b.WriteString(docRules)
	return b.Bytes()
}
