package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// metricChart is the declaration of one chart of the timeline in charts.yaml. draw.go draws the charts.
type metricChart struct {
	chart.Subject `yaml:",inline"`
	Queries       []query
	// Job is the scrape job that the series come from.
	Job string
	// Quiet is the text, such as "no errors", that replaces a chart without samples. Empty means that a lack of samples
	// is not good news.
	Quiet string
	// Traces means that the page links the chart to the slowest trace of each phase.
	Traces bool
	// Needs says what a run must have for this chart: "nodes", "pods", "requests" or "watches". Empty means nothing.
	Needs string
}

// query is one PromQL expression of a chart. In Expr, $rate stands for a range of slightly more than two scrape
// intervals, for rates, and $seen for a range of slightly more than one, for gauges. With such short ranges, the line
// follows the load closely, and shows a gap when scrapes fail.
type query struct {
	Expr string
	// P99 selects a classic or native histogram, whose 99th percentile is drawn instead of Expr.
	P99 string
	// By lists the labels that distinguish the series. The name of a series consists of the values of these labels. If
	// By is empty, the name is the field Name.
	By   []string
	Name string
	// PerPhase names a measurement that is drawn instead of Expr, as one constant value per phase: "other
	// programs" (number of processors that they used, if the run started the whole control plane).
	PerPhase string `yaml:"perPhase"`
}

type chartSection struct {
	Title  string
	Charts []metricChart
}

// jobGenerator is the scrape job of loadgen's own metrics.
const jobGenerator = "loadgen"

// p99 returns PromQL for the 99th percentile of a histogram by labels. It works for native
// histograms and for classic buckets.
func p99(selector string, by ...string) string {
	metric, matchers, found := strings.Cut(selector, "{")
	if found {
		matchers = "{" + matchers
	}
	native, classic := strings.Join(by, ", "), strings.Join(append([]string{"le"}, by...), ", ")
	return fmt.Sprintf("histogram_quantile(0.99, sum by (%s) (rate(%s%s[$rate]))) or histogram_quantile(0.99, sum by (%s) (rate(%s_bucket%s[$rate])))",
		native, metric, matchers, classic, metric, matchers)
}

//go:embed charts.yaml
var chartsYAML []byte

func chartSections() []chartSection {
	var all []chartSection
	d := yaml.NewDecoder(bytes.NewReader(chartsYAML))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		panic(err) // the file is part of the program
	}
	for _, s := range all {
		for _, c := range s.Charts {
			for i := range c.Queries {
				if q := &c.Queries[i]; q.P99 != "" {
					q.Expr = p99(q.P99, q.By...)
				}
			}
		}
	}
	return all
}

// measuredToTheEnd reports whether the generator wrote its final measurements: the results of the loads and the nodes,
// and its own resource use. A killed run lacks them.
func measuredToTheEnd(m result.Measurements) bool {
	return m.Generator.MaxRSSBytes > 0 || m.Scrapes.Done > 0
}

// unmet returns why a run lacks the data that a chart needs, or "" if the run has it.
func unmet(need string, m result.Measurements) string {
	did := func(has func(result.Phase) bool) bool { return slices.ContainsFunc(m.Phases, has) }
	none := ""
	switch {
	case need == "nodes" && (m.Nodes == nil || m.Nodes.Count == 0):
		none = "This run simulated no nodes."
	case need == "pods" && !did(func(p result.Phase) bool {
		return p.Workload != nil && p.Workload.PodsCreated+p.Workload.PodsReady+p.Workload.PodsDeleted > 0
	}):
		none = "This run created no pods."
	case need == "requests" && !did(func(p result.Phase) bool { return len(p.Requests)+len(p.Changes) > 0 }):
		none = "This run had no request loads."
	case need == "watches" && !did(func(p result.Phase) bool { return len(p.Watches) > 0 }):
		none = "This run had no watch loads."
	}
	if none != "" && !measuredToTheEnd(m) {
		return "Not recorded: the run did not write what it measured." // the run was killed before it wrote
	}
	return none
}
