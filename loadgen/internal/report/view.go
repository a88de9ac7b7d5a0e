package report

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// page is what the template shows, all text ready to read.
type page struct {
	chart.Timeline

	Title, Scenario     string
	Class, Word         string // of the verdict
	Headline            string
	Description         string
	Warnings, Notes     []string
	Facts               []fact
	Reasons             []string
	Gates               []gateRow
	Key                 []keyBlock
	LookBack            string // of rates and quantiles
	Sections            []drawnSection
	Recovery            []tableView
	Waterfalls          []chart.Waterfall
	Rollouts            tableView
	Splits              []splitView
	SplitsNote          string
	Tables, Environment []tableView
	Log                 tableView
	Command, ByFile     string
	YAML                string

	Panels     template.HTML // of the dashboards
	Style      template.CSS
	Script     template.JS
	Data       template.JS
	ScriptHash string

	interval time.Duration // between scrapes
	phases   []scriptPhase
}

type fact struct{ Name, Value string }

type gateRow struct {
	Class, Word, Name, Value, Bound, Margin string
	Fill                                    string // of the bar, in percent; empty without one
	Over, Objective, Detail, Expr           string
	More                                    bool // a second line says why
}

type keyBlock struct {
	Name, Missing string
	Histogram     bool
	Rows          []keyRowView
}

type keyRowView struct {
	Label, P50, P95, Value, Count, Guide string
	Exceeds                              bool
	Spark                                string
	Colour                               int
}

func newPage(ctx context.Context, r result.Result, timeline []result.Event, slots []samples.Slot, text []byte, src chart.Source) *page {
	// The resolved scenario was valid when it ran; a later version's schema
	// must not keep an old run from being shown.
	s, err := scenario.ParseRecorded(result.ScenarioFile, text)
	if err != nil {
		s = &scenario.Scenario{}
	}
	p := &page{
		Scenario: runName(r), Class: style(r.Verdict), Word: runWord(r), Warnings: warnings(r), Notes: notes(r),
		Headline: sentence(headline(r)), Description: chart.Clean(s.Description),
		Facts: facts(r), Reasons: otherReasons(r), YAML: string(text),
	}
	p.Origin = origin(r)
	p.Title = fmt.Sprintf("%s: %s", p.Word, p.Scenario)
	if p.Class == "" {
		p.Class = "nodata"
	}
	said := ""
	for _, g := range byUrgency(r.Gates) {
		row := newGateRow(g, len(r.Measurements.Phases))
		if row.Detail == said { // nine gates without data for one reason
			row.Detail, row.More = "", row.More && row.Expr != ""
		} else if row.More {
			said = row.Detail
		}
		p.Gates = append(p.Gates, row)
	}
	p.interval = cmp.Or(s.Record.Interval.D(), defaultInterval)
	p.layTimeline(r, timeline, p.interval)
	p.LookBack = chart.Format(scenario.Seconds, rateSteps*p.Grid.Step.Seconds())
	a := &artist{grid: p.Grid, src: src, result: r}
	p.layTracks(r.Recovery)
	if felt, ok := a.pulseSection(slots); ok && (r.Recovery != nil || felt.drawn()) {
		p.Sections = append(p.Sections, felt)
	}
	if signals, ok := a.signalSection(); ok {
		p.Sections = append(p.Sections, signals)
	}
	p.Sections = append(p.Sections, a.sections(ctx)...)
	for i := range p.Sections {
		p.Sections[i].fold()
	}
	p.Recovery = recoveryTables(r, p.Grid)
	p.layRollouts(r)
	for _, k := range r.Key {
		p.Key = append(p.Key, newKeyBlock(k, r, p.Sections))
	}
	p.Splits, p.SplitsNote = splits(r)
	p.Tables = phaseTables(r)
	p.Environment = environmentTables(r)
	p.Command, p.ByFile = commands(r)
	return p
}

// layRollouts draws the first few rollouts; the table has all of them.
func (p *page) layRollouts(r result.Result) {
	all := rolledOut(r.Measurements.Phases)
	p.Rollouts = rolloutTable(all)
	var more int
	if p.Waterfalls, more = waterfalls(all); more > 0 {
		p.Rollouts.Note += fmt.Sprintf(" %s more than are drawn above are in the table alone.", chart.Count(more))
	}
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// facts are what the verdict depends on, in the banner.
func facts(r result.Result) []fact {
	if r.Run.ID == "" {
		return []fact{{"Took, control plane, seed", "not recorded"}, {"Exit code", fmt.Sprint(r.ExitCode)}}
	}
	plane := "bundled"
	if !r.Run.Cluster.Bundled {
		plane = chart.Clean(r.Run.Cluster.Name)
	}
	f := []fact{{"Took", chart.Format(scenario.Seconds, runSeconds(r))}, {"Control plane", plane}}
	if v := chart.Clean(r.Run.Versions.Kubernetes); v != "" {
		f = append(f, fact{"Kubernetes", v})
	}
	if v := chart.Clean(r.Run.Versions.Etcd); v != "" {
		f = append(f, fact{"etcd", v})
	}
	if n := r.Measurements.Nodes; n != nil && n.Count > 0 {
		f = append(f, fact{"Nodes", chart.Count(n.Count) + ", " + chart.Clean(n.Fidelity)})
	}
	return append(f,
		fact{"Started", r.Run.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		fact{"Seed", fmt.Sprint(r.Run.Seed)},
		fact{"Exit code", fmt.Sprint(r.ExitCode)})
}

func newGateRow(g result.Gate, phases int) gateRow {
	row := gateRow{
		Class: style(g.Verdict), Word: word(g.Verdict), Name: chart.Clean(g.Name), Value: gateValue(g), Bound: gateBound(g),
		Margin: margin(g), Objective: chart.Clean(g.Objective), Detail: chart.Clean(g.Detail), Expr: chart.Clean(g.Expr),
		Over: overText(g, phases), More: g.Verdict != result.Pass && g.Detail+g.Expr != "",
	}
	// The bar is the part of the bound that was used up, so for a bound from
	// above only.
	if g.Value != nil && g.Op == "<=" && g.Bound > 0 && !math.IsNaN(*g.Value) {
		row.Fill = chart.PercentAt(min(max(*g.Value/g.Bound, 0), 1))
	}
	return row
}

func newKeyBlock(k result.KeyMetric, r result.Result, drawnSections []drawnSection) keyBlock {
	b := keyBlock{Name: chart.Clean(k.Name), Missing: chart.Clean(k.Missing)}
	if len(k.Rows) == 0 && b.Missing == "" {
		b.Missing = "no rows"
	}
	hours := runSeconds(r) / 3600
	for _, row := range k.Rows {
		b.Histogram = b.Histogram || row.P99 != nil
		v := keyRowView{Label: chart.Clean(row.Label), P50: chart.None, P95: chart.None, Value: chart.None, Count: chart.Scaled(row.Count, 3, []string{"", "k", "M", "G"})}
		if row.P50 != nil {
			v.P50 = chart.Format(scenario.Seconds, *row.P50)
		}
		if row.P95 != nil {
			v.P95 = chart.Format(scenario.Seconds, *row.P95)
		}
		unit := scenario.Seconds
		if row.P99 == nil {
			unit = scenario.Count
		}
		if value := keyValue(row); value != nil {
			v.Value = chart.Format(unit, *value)
			if g, ok := guideOf(k.Name, row, hours); ok {
				v.Guide, v.Exceeds = g.text, *value > g.bound
			}
		}
		v.Spark, v.Colour = sparkline(k.Name, v.Label, drawnSections)
		b.Rows = append(b.Rows, v)
	}
	return b
}

// sparkline borrows the line of a key metric's row from its chart.
func sparkline(metric, label string, sections []drawnSection) (path string, colour int) {
	for _, s := range sections {
		for _, c := range s.Charts {
			for _, l := range c.Series {
				if c.Key == metric && l.Name == label {
					return l.Path + l.Dots, l.Colour
				}
			}
		}
	}
	return "", 0
}

// commands are how to run the same again: as it was typed, and from the
// resolved scenario, which holds even when the catalogue has changed.
func commands(r result.Result) (typed, byFile string) {
	var cluster string
	if !r.Run.Cluster.Bundled {
		cluster = " --kubeconfig FILE"
	}
	typed = "loadgen run " + shellQuote(chart.Clean(r.Run.Scenario))
	if r.Run.Variant != "" {
		typed += " --variant " + shellQuote(chart.Clean(r.Run.Variant))
	}
	for _, o := range r.Run.Overrides {
		typed += " --set " + shellQuote(chart.Clean(o))
	}
	for _, g := range r.Run.WithoutGates {
		typed += " --without-gate " + shellQuote(chart.Clean(g))
	}
	return typed + cluster, "loadgen run DIR/" + result.ScenarioFile + cluster
}

// shellQuote quotes what a POSIX shell would not take as it is.
func shellQuote(s string) string {
	safe := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,%+@", r)
	}) < 0
	if safe && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
