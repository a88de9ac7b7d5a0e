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

// metricChart declares one chart of the timeline, in charts.yaml; draw.go draws it.
type metricChart struct {
	chart.Subject `yaml:",inline"`
	Queries       []query
	// Job is the scrape job that the series come from.
	Job string
	// Quiet explains the absence of samples if that is good news. Empty means that it is
	// not.
	Quiet string
	// Needs names what a run must have for this chart: nodes, pods, requests or
	// watches. Empty means nothing.
	Needs string
}

// query is one PromQL expression of a chart. $rate is the window of rates, two
// scrapes and a bit; $seen the window of gauges, one scrape and a bit. Both are so
// short that a gap in the scrapes is a gap in the line, and that the line follows the storm.
type query struct {
	Expr string
	// P99 selects a histogram, classic or native, whose quantile is drawn in place of Expr.
	P99 string
	// By names the labels that distinguish the series; their values make the
	// series' name. Name is used if the values are missing.
	By   []string
	Name string
	// PerPhase names an exact client-side number that is drawn as a level through each
	// phase, in place of Expr: offered.
	PerPhase string `yaml:"perPhase"`
}

type chartSection struct {
	Title  string
	Charts []metricChart
}

// jobGenerator is the scrape job of our own metrics.
const jobGenerator = "loadgen"

// p99 returns the quantile of a histogram by labels, whether it was recorded as a
// native histogram or with classic buckets.
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

// measuredToTheEnd reports whether the generator wrote what is known only at a run's
// end: what the loads, the nodes and the generator itself did.
func measuredToTheEnd(m result.Measurements) bool {
	return m.Generator.MaxRSSBytes > 0 || m.Scrapes.Done > 0
}

// unmet returns the reason why a run lacks what a chart needs, or "".
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
		return "Not recorded: the run did not write what it measured." // it was killed before
	}
	return none
}
