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

These alerting and recording rules are for a production cluster or a run. Any Prometheus can [load](../how-to/grafana-prometheus.md) the files in
[alerts/](../../alerts). This command prints the [runbook](runbooks.md) and the expression of an alert:

    loadgen alerts -o json | jq -r '.[] | select(.alert == "EtcdNoLeader") | .runbook, .expr'

## Requirements

- The scrape jobs kube-apiserver, etcd, kube-scheduler, kube-controller-manager and, if they exist, cloud-controller-manager and loadgen. If your jobs have other names,
  [render](../how-to/grafana-prometheus.md#another-prometheus) the rules.
- A scrape interval of at most 30 s, because the shortest range of a rate is 2 minutes.
- The [metrics](#metrics) below. MetricsMissing fires if scrapes of a component succeed without them.

If your series have a label ` + "`cluster`" + `, alerts keep it, except TargetAbsent, which has only the label ` + "`job`" + `.

## The alerts

The [runbooks](runbooks.md) describe each alert. ` + "`loadgen alerts`" + ` lists the alerts, each with its [proof](../../loadgen/lab/records/proofs.md): a run whose fault fires the alert.

An alert can fire after its fault has ended. Its expression holds as soon as its range (often the last 2 minutes) contains enough of the fault, and then the time
` + "`for`" + ` begins. The alert stays active while the range still contains enough of the fault. For example, if a disk is slow for 18 s, EtcdWALFsyncSlow fires 72 s after
the start of the fault, and stays active for about a minute.

| component | critical | warning |
|---|---|---|
`

const docRules = `
## Tests and cost

- [alerts/tests](../../alerts/tests) has two cases for each alert, one that fires and one that does not. To run them: ` + "`go test ./alerts`" + ` or
  ` + "`promtool test rules alerts/tests/*.yaml`" + `.
- Evaluating all rules every 15 s over a recorded hour of 5,000 nodes took 6.3 s of CPU, 0.2% of a core.
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
	b.WriteString("\n## Recording rules\n\nThe alerts and dashboards use these series.\n\n")
	var records []string
	for _, r := range allRules(t) {
		if r.Record != "" {
			records = append(records, r.Record)
		}
	}
	slices.Sort(records)
	b.WriteString("    " + strings.Join(slices.Compact(records), "\n    ") + "\n")
	b.WriteString("\n## Metrics\n\nThe rules read these metrics, here with their labels except `job` and `instance`.\n\n")
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
		fmt.Fprintf(&b, "Type %s:\n\n    %s\n", kind, strings.Join(byType[kind], "\n    "))
	}
	b.WriteString(docRules)
	return b.Bytes()
}
