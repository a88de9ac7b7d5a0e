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
)

var update = flag.Bool("update", false, "rewrite docs/alerts.md")

const docFile = "../docs/alerts.md"

// TestDoc keeps docs/alerts.md equal to the rules.
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
		t.Error("docs/alerts.md is not what the rules say: go test ./alerts -update")
	}
}

const docHead = `# Alerts

The rules in [alerts/](../alerts) are ordinary Prometheus rule files. They watch a production cluster as they watch a
storm here, and each has the fault that must fire it.

This page is written by the program: ` + "`go test ./alerts -update`" + `.

## What they expect

- The jobs kube-apiserver, etcd, kube-scheduler, kube-controller-manager and, beside a run, loadgen. Relabel yours, if they have other names.
  A label ` + "`cluster`" + ` is kept. Alerts on what is absent cannot be per cluster: absence has no labels.
- Scrapes at most 30 s apart. The shortest range is 2 minutes, which then holds four of them.
- The metrics at the end of this page. MetricsMissing fires where a component answers without them.

## How they are made

**On edges of buckets.** "Over 10%% of fsyncs took over 8 ms" is counted; a p99 is interpolated between 8 and 16 ms.

**Not to go blind.** No expression adds or compares with a series that may not exist. The budget of latency needs no 5xx to
exist; a counter that appears with its first event (a webhook that fails open) fires although increase() of it is zero;
descriptors are looked at over two minutes, as a process that has none left may refuse the scrape too, against the limit of the
last hour, as reading the limit takes one.

**Tested.** For each alert [alerts/tests](../alerts/tests) has a case in which it fires and one in which it is quiet, and
each file is evaluated without data. ` + "`go test ./alerts`" + ` runs them with Prometheus' engine; ` + "`promtool test rules alerts/tests/*.yaml`" + ` runs
the same files. [pint](https://github.com/cloudflare/pint) finds nothing in the rules, by its checks that need no server and by
[two of ours](../alerts/.pint.hcl); where a check is switched off, the reason is beside it. Names, types, labels and bucket edges are
compared with the source of the components that go.mod pins.

**Cheap.** All of them over a recorded hour of 5,000 nodes, every 15 s, took 6.3 s of CPU: a fifth of a percent of a core.

**Proven.** ` + "`loadgen alerts prove`" + ` runs the faults below on real control planes and evaluates all rules over what was recorded,
by Prometheus' own code: each must fire within 1.5 times its floor, and resolve; what is neither expected nor known to follow from
the fault must be silent, and so must all in healthy runs. It prints the matrix of rules and
runs: [proofs.md](proofs.md). ` + "`loadgen alerts prove DIR...`" + `
judges runs that are there.

## Rule, fault, proof

The *floor* is the longest that a fault of that size may take to fire the alert if nothing is late: a scrape, the time until the
rule is over its threshold, for, and a round of evaluation; here with scrapes every %s and evaluation every %s. What upstream's
mixins see of the same faults: [mixins.md](mixins.md). Incidents are the rows I1 to I11 of the mission.
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
	b.WriteString("\n| alert | incident | fault | proof | floor | smallest fault |\n|---|---|---|---|---|---|\n")
	for _, a := range alerts {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s | %s |\n", a.Alert, strings.ToLower(a.Alert), a.Incident, a.Fault, a.Run,
			model.Duration(a.Floor(docScrape, docEvaluation)), a.Smallest)
	}
	b.WriteString("\n## The alerts\n")
	for _, a := range alerts {
		fmt.Fprintf(&b, "\n### %s\n\n%s, of %s, in %s", a.Alert, a.Labels["severity"], a.Labels["component"], a.File)
		if a.For > 0 {
			fmt.Fprintf(&b, "; for %v", a.For)
		}
		fmt.Fprintf(&b, ". Fired by: %s.", a.How)
		if a.Upstream != "" {
			fmt.Fprintf(&b, " Upstream's mixins: %s.", a.Upstream)
		}
		fmt.Fprintf(&b, "\n\n```promql\n%s\n```\n\n", strings.TrimSpace(a.Expr))
		for line := range strings.Lines(a.Annotations["runbook"]) {
			head, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
			fmt.Fprintf(&b, "- **%s:**%s\n", head, rest)
		}
	}
	b.WriteString("\n## Recording rules\n\nDashboards read these too.\n\n| record | labels |\n|---|---|\n")
	var rows []string
	for _, r := range allRules(t) {
		if r.Record != "" {
			var set []string
			for name, v := range r.Labels {
				set = append(set, name+"="+v)
			}
			rows = append(rows, fmt.Sprintf("| %s | %s |\n", r.Record, strings.Join(set, ", ")))
		}
	}
	slices.Sort(rows)
	b.WriteString(strings.Join(rows, ""))
	b.WriteString("\n## Metrics\n\n| metric | type | labels | declared in |\n|---|---|---|---|\n")
	for _, f := range Families() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Name, f.Type, strings.Join(f.Labels, ", "), f.Source)
	}
	return b.Bytes()
}
