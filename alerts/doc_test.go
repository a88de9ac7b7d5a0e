package alerts

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

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

Prometheus rules for a production cluster or a storm here. Below: what each alert means, what to look at and do, and
the fault that fires it. Expressions are in the rule files of [alerts/](../../alerts); ` + "`loadgen alerts`" + ` lists the alerts.

## What they expect

- The jobs kube-apiserver, etcd, kube-scheduler, kube-controller-manager and, beside a run, loadgen. Relabel yours where they have
  other names. A label ` + "`cluster`" + ` is kept, but not by alerts on absence: absence has no labels.
- Scrapes at most 30 s apart: the shortest range is 2 minutes.
- The [metrics](#metrics) at the end of this page, declared where [internal/metricnames/table.go](../../internal/metricnames/table.go) says. MetricsMissing fires where a component answers without them.

## Rule, fault, proof

` + "`loadgen alerts`" + ` prints these as a table. Of each alert below:

- *Proof*: the run that fires it ([proofs.md](../records/proofs.md)). *Smallest*: the smallest fault that does.
- *Floor*: the longest that a fault of that size takes to fire the alert if nothing is late: a scrape, the time until the rule is
  over its threshold, ` + "`for`" + `, a round of evaluation; here with scrapes every %s and evaluation every %s.
- *Incident*: a page of [incidents](../records/incidents/README.md). *Upstream*: when its mixins alert ([mixins.md](mixins.md)).
`

const docRules = `
## How they are made and tested

- **Thresholds lie on edges of buckets**: "over 10% of fsyncs took over 8 ms" is counted; a p99 would be interpolated between 8 and 16 ms.
- **No rule goes blind on a missing series.** None adds or compares with a series that may not exist: the latency budget needs no 5xx
  to exist; a counter that appears with its first event fires; descriptors are looked at over two minutes, against the limit of the
  last hour, because a process without free descriptors refuses the scrape and cannot read its own limit.
- **Unit tests.** [alerts/tests](../../alerts/tests) has a case that fires and one that is quiet for each alert; each file is also evaluated
  without data. ` + "`go test ./alerts`" + ` and ` + "`promtool test rules alerts/tests/*.yaml`" + ` run them. [pint](https://github.com/cloudflare/pint) finds nothing,
  with [two checks of ours](../../alerts/.pint.hcl). Metrics, labels and bucket edges are compared with the source of the pinned components.
- **Cost.** All rules every 15 s over a recorded hour of 5,000 nodes: 6.3 s of CPU, 0.2% of a core.
- **Proofs.** ` + "`loadgen alerts prove`" + ` runs the faults on real control planes and evaluates all rules over the recording with Prometheus' own
  code. Each must fire within 1.5 times its floor and resolve; all but expected consequences must be silent, and all must be in
  healthy runs. Results: [proofs.md](../records/proofs.md).

` + "`go test ./alerts -update`" + ` writes this page.
`

const (
	docScrape     = 5 * time.Second
	docEvaluation = 15 * time.Second
)

func page(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, docHead, docScrape, docEvaluation)
	alerts := mustRules(t)
	b.WriteString("\n## The alerts\n")
	for _, a := range alerts {
		fmt.Fprintf(&b, "\n### %s\n\n%s, %s, in %s. Proof %s, floor %s. Fired by: %s. Smallest: %s.", a.Alert, a.Labels["severity"], a.Labels["component"], a.File,
			a.Run, model.Duration(a.Floor(docScrape, docEvaluation)), a.How, a.Smallest)
		if a.Incident != "" {
			fmt.Fprintf(&b, " Incident %s.", a.Incident)
		}
		if a.Upstream != "" {
			fmt.Fprintf(&b, " Upstream: %s.", a.Upstream)
		}
		b.WriteString("\n\n")
		for line := range strings.Lines(a.Annotations["runbook"]) {
			head, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
			fmt.Fprintf(&b, "- **%s:**%s\n", head, rest)
		}
	}
	b.WriteString(docRules)
	b.WriteString("\n## Recording rules\n\nDashboards read these too.\n\n")
	var rows []string
	for _, r := range allRules(t) {
		if r.Record != "" {
			var set []string
			for name, v := range r.Labels {
				set = append(set, name+"="+v)
			}
			labels := ""
			if len(set) > 0 {
				labels = " (" + strings.Join(set, ", ") + ")"
			}
			rows = append(rows, fmt.Sprintf("- %s%s\n", r.Record, labels))
		}
	}
	slices.Sort(rows)
	b.WriteString(strings.Join(rows, ""))
	b.WriteString("\n## Metrics\n\n")
	for _, f := range metricnames.For(metricnames.Rules) {
		name := f.Name
		if len(f.Labels) > 0 {
			name += "{" + strings.Join(f.Labels, ",") + "}"
		}
		fmt.Fprintf(&b, "- `%s`, %s\n", name, f.Type)
	}
	return b.Bytes()
}
