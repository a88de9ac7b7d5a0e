package site

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/changepoint"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/result"
)

// group holds the runs of a scenario and a variant, in the order of their start.
type group struct {
	scenario, variant string
	all               []*runs.Entry
}

// maxInTrend is the maximum number of runs in a trend: the newest ones.
const maxInTrend = 500

// groupsOf returns the groups of entries that have at least `least` runs, the largest first. It leaves out the runs of
// comparisons and searches, which differ on purpose.
func groupsOf(all []*runs.Entry, least int) (groups []group) {
	type key struct{ scenario, variant string }
	of := map[key][]*runs.Entry{}
	for _, e := range all {
		if e.Judged() && e.Parent == "" {
			k := key{e.Scenario, e.Variant}
			of[k] = append(of[k], e)
		}
	}
	for k, members := range of {
		if len(members) < least {
			continue
		}
		members = slices.Clone(members[:min(len(members), maxInTrend)]) // entries are sorted: the newest first
		slices.Reverse(members)
		groups = append(groups, group{k.scenario, k.variant, members})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(b.all), len(a.all)), cmp.Compare(a.scenario, b.scenario), cmp.Compare(a.variant, b.variant))
	})
	return groups
}

func (g group) name() string {
	if g.variant == "" {
		return g.scenario
	}
	return g.scenario + " (" + g.variant + ")"
}

// change is a change of a metric in the trend of a group.
type change struct {
	group         group
	figure        result.TrendFigure
	at            result.TrendChange
	before, after *runs.Entry // the last run before the change, and the first after it
}

// changesOf returns the changes of a trend, the latest first.
func changesOf(g group, t result.Trend) (all []change) {
	for _, f := range t.Figures {
		for _, c := range f.Changes {
			before := c.Run - 1
			for before > 0 && f.Values[before] == nil {
				before--
			}
			all = append(all, change{g, f, c, g.all[before], g.all[c.Run]})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(b.at.Run, a.at.Run) })
	return all
}

// worse reports whether the change is for the worse.
func (c change) worse() bool { return (c.at.After > c.at.Before) == (c.figure.Better == "lower") }

// size returns the means before and after the change, as text.
func (c change) size() string {
	text := report.Amount(c.figure.Unit, c.at.Before) + " → " + report.Amount(c.figure.Unit, c.at.After)
	if c.at.Before != 0 {
		text += ", " + digits.Change(c.at.After/c.at.Before-1)
	}
	return text
}

// proof returns the numbers of runs on both sides of the change and its p-value, as text. Spikes and runs without data do
// not count.
func (c change) proof() string {
	from, to := 0, len(c.figure.Values)
	for _, o := range c.figure.Changes {
		if o.Run < c.at.Run {
			from = o.Run
		} else if o.Run > c.at.Run {
			to = o.Run
			break
		}
	}
	counted := func(from, to int) (n int) {
		for i := from; i < to; i++ {
			if c.figure.Values[i] != nil && !slices.Contains(c.figure.Spikes, i) {
				n++
			}
		}
		return n
	}
	return fmt.Sprintf("%s before, %s after, p = %.1g", digits.Count(counted(from, c.at.Run), "run"), digits.Count(counted(c.at.Run, to), "run"), c.at.P)
}

// row returns the table row of a change.
func (c change) row(l links) document.Row {
	word, style := "better", "pass"
	if c.worse() {
		word, style = "worse", "fail"
	}
	var differs []string
	for _, d := range runs.Differences([]*runs.Entry{c.before, c.after}) {
		differs = append(differs, fmt.Sprintf("%s: %s → %s", d.Name, cmp.Or(d.Values[0], "–"), cmp.Or(d.Values[1], "–")))
	}
	if len(differs) == 0 {
		differs = []string{"nothing that the runs record"}
	}
	cells := []document.Cell{
		{Text: c.figure.Name, Small: []string{c.group.name()}},
		{Text: word, Chip: style},
		{Text: c.size(), Small: []string{c.proof()}},
		{Text: when(c.after), To: l.run(c.after), Small: []string{c.after.Path}},
		{Small: differs},
	}
	if !l.alone {
		cells[0].Links = []document.Link{{Text: "trend", To: l.trends(c.group.scenario, c.group.variant) + "#metric-" + chart.Slug(c.figure.Name)}}
	}
	if !l.static {
		cells[3].Links = []document.Link{{Text: "compare with the run before", To: l.over(c.before, c.after)}}
	}
	return document.Row{Cells: cells}
}

// changesTable returns the table of changes.
func changesTable(all []change, l links, empty string) *document.Table {
	t := &document.Table{
		Label: "Changes of metrics", Class: "list", Empty: empty,
		Head: []document.Column{{Text: "Metric"}, {Text: "Became"}, {Text: "Mean before → after"}, {Text: "First run after the change (UTC)"}, {Text: "What changed in this run"}},
	}
	for _, c := range all {
		t.Rows = append(t.Rows, c.row(l))
	}
	return t
}

// trendPage returns the page with the trends of a group.
func trendPage(groups []group, g group, l links) document.Document {
	t := runs.Trend(g.all)
	d := l.newDocument("Trends of " + g.name())
	d.Links = l.navigation(groups)
	first, last := g.all[0], g.all[len(g.all)-1]
	d.Line = fmt.Sprintf("%s, %s to %s", digits.Count(len(g.all), "run"), when(first), when(last))
	empty := "No metric changed its mean by 5% or more."
	if len(g.all) < changepoint.MinValues {
		empty = fmt.Sprintf("These are too few runs: the search for changes needs at least %d.", changepoint.MinValues)
	}
	changes := document.Section{
		ID: "changes", Title: "Changes", Table: changesTable(changesOf(g, t), l, empty),
		Hint: "At a change, the means of the runs before and after it differ by at least 5%, and Welch's t-test gives p at most 0.001. Outliers of single runs do not count. The last column compares the run with the one before it.",
	}
	metrics := document.Section{ID: "metrics", Title: "Metrics over all runs"}
	for _, f := range t.Figures {
		metrics.Figures = append(metrics.Figures, g.chart(f, l))
	}
	metrics.Hint = "Each dot is a run: select it to open the run. Large dots are runs that failed the gate, or outliers; an outlier above the axis is at its top. A dashed vertical line marks a change, and a dotted horizontal line the bound of the gate."
	others := document.Section{ID: "scenarios", Title: "Other scenarios"}
	for _, o := range groups {
		if o.name() != g.name() {
			others.Links = append(others.Links, document.Link{Text: fmt.Sprintf("%s (%s)", o.name(), digits.Count(len(o.all), "run")), To: l.trends(o.scenario, o.variant)})
		}
	}
	if !l.static {
		q := query("scenario", g.scenario, "variant", g.variant)
		metrics.Links = []document.Link{{Text: "Values as JSON", To: "trend.json" + q}, {Text: "Values as CSV", To: "trend.csv" + q}}
	}
	d.Sections = []document.Section{changes}
	if spikes := spikesOf(g, t); len(spikes) > 0 {
		d.Sections = append(d.Sections, spikesSection(spikes, l))
	}
	d.Sections = append(d.Sections, metrics)
	if len(others.Links) > 0 {
		d.Sections = append(d.Sections, others)
	}
	if len(t.Notes) > 0 {
		d.Sections = append(d.Sections, document.Section{ID: "notes", Title: "Runs that are left out", Text: t.Notes[:min(len(t.Notes), 50)]})
	}
	return d
}

// nearBound limits when a chart shows the bound of a gate: the bound must be at most nearBound times the largest value.
// A higher bound would squeeze all values.
const nearBound = 3

// chart returns the chart of a metric: a dot for each run, a line at each change, and the bound of a gate.
func (g group) chart(f result.TrendFigure, l links) document.Figure {
	const width, height = 100.0, 40.0
	most, bound := 0.0, 0.0
	for i, v := range f.Values {
		if v != nil && !slices.Contains(f.Spikes, i) { // an outlier would squeeze all other values
			most = max(most, *v)
		}
	}
	if gate := g.all[len(g.all)-1].Of(f.Name); gate != nil && gate.Verdict != "" && gate.Bound > 0 {
		bound = gate.Bound
	}
	caption := f.Name + ", " + f.Better + " is better"
	if bound > 0 {
		caption += ", bound " + report.Amount(f.Unit, bound)
	}
	if bound <= nearBound*most {
		most = max(most, bound)
	}
	figure := document.Figure{
		ID: "metric-" + chart.Slug(f.Name), Caption: fmt.Sprintf("%s (axis from 0 to %s)", caption, report.Amount(f.Unit, most)),
		Drawing: document.Drawing{Width: width, Height: height, Label: fmt.Sprintf("%s in %s, with %s", f.Name, digits.Count(len(g.all), "run"), digits.Count(len(f.Changes), "change"))},
		Left:    when(g.all[0]), Right: when(g.all[len(g.all)-1]),
	}
	add := func(s document.Shape) { figure.Drawing.Shapes = append(figure.Drawing.Shapes, s) }
	x := func(run float64) float64 { return width * (run + 0.5) / float64(len(g.all)) }
	y := func(v float64) float64 { return height - (height-2)*min(v/max(most, 1e-300), 1) } // in this order, because values may be close to the maximum
	add(document.Shape{Class: "zero", Y: height, X2: width, Y2: height})
	for _, c := range f.Changes {
		at := x(float64(c.Run) - 0.5)
		add(document.Shape{Class: "change", X: at, X2: at, Y2: height})
	}
	if bound > 0 && bound <= most {
		add(document.Shape{Class: "limit", Y: y(bound), X2: width, Y2: y(bound), Title: "bound of the gate"})
	}
	for i, v := range f.Values {
		if v == nil {
			continue
		}
		dot := document.Shape{Dot: true, X: x(float64(i)), Y: y(*v), To: l.run(g.all[i]), Title: when(g.all[i]) + ": " + report.Amount(f.Unit, *v) + ", " + g.all[i].Path}
		if m := g.all[i].Of(f.Name); m.Verdict == result.Fail || slices.Contains(f.Spikes, i) {
			dot.Class = "bad"
		}
		add(dot)
	}
	return figure
}

// spike is a single value that is far from its neighbours.
type spike struct {
	figure       result.TrendFigure
	value, usual float64 // usual is the value of the nearest run without a spike
	run          *runs.Entry
}

// news reports whether the spike is worse than the usual value, and belongs to a gate or a compared metric.
func (s spike) news() bool {
	return !s.run.Of(s.figure.Name).Key && (s.value > s.usual) == (s.figure.Better == "lower")
}

// spikesOf returns the spikes of a trend, the latest first.
func spikesOf(g group, t result.Trend) (all []spike) {
	for _, f := range t.Figures {
		for _, at := range f.Spikes {
			all = append(all, spike{f, *f.Values[at], usual(f, at), g.all[at]})
		}
	}
	slices.SortStableFunc(all, func(a, b spike) int { return b.run.Started.Compare(a.run.Started) })
	return all
}

// usual returns the value of the nearest other run that is not a spike.
func usual(f result.TrendFigure, at int) float64 {
	for step := 1; step < len(f.Values); step++ {
		for _, i := range []int{at - step, at + step} {
			if i >= 0 && i < len(f.Values) && f.Values[i] != nil && !slices.Contains(f.Spikes, i) {
				return *f.Values[i]
			}
		}
	}
	return *f.Values[at]
}

// spikesSection returns the table of spikes.
func spikesSection(all []spike, l links) document.Section {
	table := &document.Table{Label: "Outliers", Class: "list", Head: []document.Column{{Text: "Metric"}, {Text: "Value"}, {Text: "Run (UTC)"}, {Text: "Failures and causes"}}}
	for _, s := range all {
		why := s.run.Why
		if len(why) == 0 {
			why = []string{"none recorded"}
		}
		table.Rows = append(table.Rows, document.Row{Cells: []document.Cell{
			{Text: s.figure.Name, Small: []string{s.run.Name()}}, {Text: report.Amount(s.figure.Unit, s.value)}, {Text: when(s.run), To: l.run(s.run), Small: []string{s.run.Path}}, {Small: why},
		}})
	}
	return document.Section{
		ID: "spikes", Title: "Outliers of single runs", Table: table,
		Hint: "An outlier differs from the median of the three runs before and after it by more than 25%, and by more than six times their median deviation.",
	}
}

// when returns the start of a run.
func when(e *runs.Entry) string { return e.Started.UTC().Format("2006-01-02 15:04") }

// trendCSV returns the trends as CSV: a line for each run, with a column for each metric.
func trendCSV(g group) string {
	t := runs.Trend(g.all)
	lines := [][]string{{"run", "started", "verdict", "stormglass", "kubernetes"}}
	for _, f := range t.Figures {
		lines[0] = append(lines[0], f.Name)
	}
	for i, e := range g.all {
		line := []string{e.Path, e.Started.UTC().Format(time.RFC3339), e.Verdict, e.Versions.Stormglass, e.Versions.Kubernetes}
		for _, f := range t.Figures {
			value := ""
			if v := f.Values[i]; v != nil {
				value = strconv.FormatFloat(*v, 'g', -1, 64)
			}
			line = append(line, value)
		}
		lines = append(lines, line)
	}
	var b strings.Builder
	_ = csv.NewWriter(&b).WriteAll(lines) // a strings.Builder returns no error
	return b.String()
}

// WriteTrend writes a page as one file: the trends of the scenario and variant with the most runs in the index. The
// page names the other scenarios and variants.
func WriteTrend(ctx context.Context, w io.Writer, index *runs.Index) error {
	index.Scan(ctx)
	groups := groupsOf(index.Snapshot().Entries, 1)
	if len(groups) == 0 {
		return exitcode.Usagef("a page of trends needs a judged run (`loadgen report DIR` judges a run)")
	}
	l := links{static: true, alone: true}
	d := trendPage(groups[:1], groups[0], l)
	others := document.Section{ID: "others", Title: "Scenarios and variants that this page leaves out"}
	for _, g := range groups[1:] {
		others.Text = append(others.Text, fmt.Sprintf("%s (%s)", g.name(), digits.Count(len(g.all), "run")))
	}
	if len(others.Text) > 0 {
		d.Sections = append(d.Sections, others)
	}
	return document.Write(w, d)
}
