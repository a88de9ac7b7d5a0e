package report

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Overlaid is a run on the page of several runs.
type Overlaid struct {
	Name     string // short unique name, for legends and columns
	Link     string // address of the run's report; empty: no link
	Result   result.Result
	Timeline []result.Event
	Source   chart.Source  // recorded metrics; nil if the run has none
	Interval time.Duration // time between samples; zero means the default
	// Downsampled is true if Source has only one of the recorded samples per Interval.
	Downsampled bool
}

// Difference is a setting, a version or a property of the host that differs between runs.
type Difference struct {
	Name   string
	Values []string // a value for each run; "" if a run has none
}

// The minimum and maximum number of runs on the page of several runs. The palette has no more colours that are easy to
// distinguish.
const (
	fewestOverlaid = 2
	maxOverlaid    = 6
)

// OverlayHTML writes the page of two to six runs: their gates, metrics and slowest requests in columns, and their
// charts over each other. Ratios compare with the first run. known contains statements about the runs that hold
// according to longer histories. command is the command that tests whether the runs really differ; it may be empty. nav
// is the navigation at the top of the page.
func OverlayHTML(ctx context.Context, w io.Writer, runs []Overlaid, differences []Difference, known []string, command string, nav []document.Link) error {
	if len(runs) < fewestOverlaid || len(runs) > maxOverlaid {
		return fmt.Errorf("the page shows %d to %d runs, not %d", fewestOverlaid, maxOverlaid, len(runs))
	}
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].Name = terminal.Clean(runs[i].Name)
	}
	script, tmpl, err := loadPage()
	if err != nil {
		return err
	}
	rules, err := pageFiles.ReadFile("uplot/uPlot.min.css")
	if err != nil {
		return err
	}
	d := document.Document{
		Title: namesOf(runs), Heading: fmt.Sprintf("%d runs side by side", len(runs)), Line: namesOf(runs), Links: nav,
		Sections: []document.Section{noProof(append(busyRuns(runs), known...), command), runsSection(runs), differencesSection(runs, differences), gatesSection(runs)},
		Footer:   "Created by Stormglass from the run directories. This page sends no requests.",
	}
	for _, s := range []document.Section{figuresSection(runs), keySection(runs), slowestSection(runs)} {
		if len(s.Table.Rows) > 0 {
			d.Sections = append(d.Sections, s)
		}
	}
	if !slices.ContainsFunc(runs, func(r Overlaid) bool { return r.Source != nil }) {
		d.Sections = append(d.Sections, document.Section{ID: "timeline", Title: "Timeline", Text: []string{"The runs have no recorded metrics, so there are no charts."}})
		return document.Write(w, d)
	}
	p := newOverlay(ctx, runs)
	if err := ctx.Err(); err != nil {
		return err // some charts would be missing
	}
	charts := document.Section{ID: "timeline", Title: "Timeline", Text: p.Notes}
	if len(p.Bands) > 0 {
		data, err := p.scriptJSON()
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := tmpl.ExecuteTemplate(&b, "overlay", p); err != nil {
			return fmt.Errorf("render the charts: %w", err)
		}
		charts.HTML = template.HTML(b.String()) // the template has escaped it
		d.Script, d.Data, d.Rules = template.JS(script), data, template.CSS(rules)
	}
	d.Sections = append(d.Sections, charts)
	return document.Write(w, d)
}

// namesOf returns the names of runs as text: "a, b and c".
func namesOf(runs []Overlaid) string {
	var names []string
	for _, r := range runs {
		names = append(names, r.Name)
	}
	return listed(names)
}

// listed joins names: "a, b and c".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// noProof returns the section which says that differences on the page prove no regression. known and command are as in
// OverlayHTML.
func noProof(known []string, command string) document.Section {
	s := document.Section{ID: "proof", Text: []string{
		"Runs vary: two runs of the same configuration also have different values. So a difference on this page does not prove a regression.",
	}}
	s.Text = append(s.Text, cleaned(known)...)
	if command != "" {
		s.Text = append(s.Text, "To test whether a difference is real, run both configurations several times:")
		s.HTML = template.HTML(`<pre class="command">` + template.HTMLEscapeString(terminal.Clean(command)) + "</pre>\n")
	}
	return s
}

// columns returns the headings of a table: the first column, then a numeric column for each run.
func columns(first string, runs []Overlaid) []document.Column {
	all := []document.Column{{Text: first}}
	for _, r := range runs {
		all = append(all, document.Column{Text: r.Name, Numeric: true})
	}
	return all
}

func runsSection(runs []Overlaid) document.Section {
	t := &document.Table{Label: "Runs", Class: "list", Head: []document.Column{
		{Text: "Run"}, {Text: "Verdict"}, {Text: "Started (UTC)"}, {Text: "Duration", Numeric: true}, {Text: "Scenario"},
		{Text: "Other programs on the machine"}, {Text: "Main cause of problems"},
	}}
	for _, r := range runs {
		started, took := chart.None, chart.None
		if !r.Result.Run.Started.IsZero() {
			started = r.Result.Run.Started.UTC().Format(time.DateTime)
		}
		if s := runSeconds(r.Result); s > 0 {
			took = seconds(s)
		}
		t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{
			{Text: r.Name, To: r.Link}, {Text: runWord(r.Result), Chip: style(r.Result.Verdict)}, {Text: started},
			{Text: took}, {Text: runName(r.Result)}, othersCell(r.Result), {Text: mainCause(r.Result)},
		}})
	}
	return document.Section{ID: "runs", Title: "Runs", Table: t}
}

// busyRuns returns a sentence about the runs during which the machine was busy.
func busyRuns(runs []Overlaid) []string {
	var names []string
	for _, r := range runs {
		if len(busyPhases(r.Result)) > 0 {
			names = append(names, r.Name)
		}
	}
	if names == nil {
		return nil
	}
	return []string{"The machine was busy during " + listed(names) + ", so times measured there may be too long."}
}

// othersCell returns a cell with the mean number of processors that other programs used, and the names of the phases in
// which the machine was busy.
func othersCell(r result.Result) document.Cell {
	var busy []string
	for _, p := range busyPhases(r) {
		busy = append(busy, p.Name)
	}
	c := document.Cell{Text: chart.None}
	sum, seconds := machine.Sum(r.Measurements.Phases)
	if f, ok := machine.Of(sum, seconds, r.Run.Host.CPUs, machine.Ours(r.Run)); ok && f.Others != nil {
		c.Text = fmt.Sprintf("used %.1f of %d CPUs", *f.Others, f.Processors)
	}
	if len(busy) > 0 {
		c.Small = []string{"machine busy in " + phaseNames(busy)}
	}
	return c
}

// mainCause returns the strongest cause of the diagnosis.
func mainCause(r result.Result) string {
	if r.Diagnosis == nil || len(r.Diagnosis.Causes) == 0 {
		return chart.None
	}
	return terminal.Clean(slices.MaxFunc(r.Diagnosis.Causes, func(x, y result.Cause) int { return cmp.Compare(x.Strength, y.Strength) }).Title)
}

func differencesSection(runs []Overlaid, differences []Difference) document.Section {
	t := &document.Table{
		Label: "Settings, versions and host that differ", Class: "abreast", Head: columns("Property", runs),
		Empty: "Nothing differs: the runs have the same settings, versions and host.",
	}
	for i := range t.Head {
		t.Head[i].Numeric = false
	}
	for _, d := range differences {
		row := document.Row{Cells: []document.Cell{{Text: terminal.Clean(d.Name)}}}
		for _, v := range d.Values {
			row.Cells = append(row.Cells, document.Cell{Text: cmp.Or(terminal.Clean(v), chart.None)})
		}
		t.Rows = append(t.Rows, row)
	}
	return document.Section{ID: "differences", Title: "What differs", Table: t}
}

// abreast is a row of values, one for each run.
type abreast struct {
	key    string // identifies the row in its table
	name   string
	notes  []string // texts below the name
	higher bool     // whether higher values are better
	values []abreastValue
}

// abreastValue is the value of one run in a row. The zero value means that the run has no value.
type abreastValue struct {
	word, style string // verdict on the value, and the style of its label
	text        string
	number      *float64 // value as a number; nil if it cannot be compared
	link        string
	notes       []string // texts below the value
}

// change returns how much worse the value of run i is than the value of the first run: the logarithm of their ratio. It
// returns 0 if the values cannot be compared.
func (r abreast) change(i int) float64 {
	first, v := r.values[0].number, r.values[i].number
	if first == nil || v == nil || *first == *v || *first < 0 || *v < 0 {
		return 0
	}
	worse := math.Log(*v / *first)
	if r.higher {
		return -worse
	}
	return worse
}

// largest returns the largest change of a row, for the better or for the worse.
func (r abreast) largest() float64 {
	most := 0.0
	for i := range r.values {
		most = max(most, math.Abs(r.change(i)))
	}
	return most
}

// verdictsDiffer reports whether the runs that have a verdict have different verdicts.
func (r abreast) verdictsDiffer() bool {
	words := map[string]bool{}
	for _, v := range r.values {
		words[v.word] = true
	}
	delete(words, "")
	return len(words) > 1
}

// ratio returns the ratio of the value of run i to the value of the first run, as text.
func (r abreast) ratio(i int) string {
	first, v := r.values[0].number, r.values[i].number
	switch {
	case i == 0 || first == nil || v == nil:
		return ""
	case *first > 0:
		return chart.Number(*v / *first, 3) + "×"
	case *first == *v:
		return "same"
	}
	return ""
}

// minWorse is the logarithm of the smallest ratio, 1.05, that a table marks. `loadgen ab` and `loadgen trend` ignore
// smaller changes, too.
var minWorse = math.Log(1.05)

// abreastTable returns a table of rows. Rows whose verdicts differ come first. Within both groups, the rows with the
// largest changes come first. The table marks in each row the value that became worse by the largest ratio to the first
// run.
func abreastTable(label, first string, runs []Overlaid, rows []abreast) *document.Table {
	t := &document.Table{Label: label, Class: "abreast", Head: columns(first, runs)}
	slices.SortStableFunc(rows, func(x, y abreast) int {
		return cmp.Or(cmp.Compare(bools.Int(y.verdictsDiffer()), bools.Int(x.verdictsDiffer())), cmp.Compare(y.largest(), x.largest()))
	})
	worst := minWorse
	for _, r := range rows {
		for i := range r.values {
			worst = max(worst, r.change(i))
		}
	}
	for _, r := range rows {
		row := document.Row{Cells: []document.Cell{{Text: r.name, Small: r.notes}}}
		for i, v := range r.values {
			if v.text == chart.None {
				v.text = ""
			}
			c := document.Cell{Text: v.word, Chip: v.style, Value: v.text, Dim: r.ratio(i), To: v.link, Small: v.notes}
			if v.word == "" {
				c.Text, c.Value, c.Strong = cmp.Or(v.text, chart.None), "", v.text != ""
			}
			if r.change(i) == worst {
				c.Small = append([]string{"largest change for the worse"}, c.Small...)
				worst = math.Inf(1) // mark one value
			}
			row.Cells = append(row.Cells, c)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rowNamed returns the row with a key. It adds a missing row, with the key as name and without values.
func rowNamed(rows *[]abreast, key string, runs []Overlaid) *abreast {
	i := slices.IndexFunc(*rows, func(r abreast) bool { return r.key == key })
	if i < 0 {
		i = len(*rows)
		*rows = append(*rows, abreast{key: key, name: key, values: make([]abreastValue, len(runs))})
	}
	return &(*rows)[i]
}

func gatesSection(runs []Overlaid) document.Section {
	var rows []abreast
	for i, run := range runs {
		for _, g := range run.Result.Gates {
			row := rowNamed(&rows, terminal.Clean(g.Name), runs)
			v := abreastValue{word: gateWord(g), style: style(g.Verdict), text: gateValue(g)}
			if number := cmp.Or(g.Value, g.Withheld); !g.AtLeast {
				v.number = number
			}
			row.higher = g.Op == ">="
			if bound := gateBound(g); row.notes == nil {
				row.notes = []string{bound}
			} else if row.notes[0] != bound {
				v.notes = []string{"bound " + bound}
			}
			row.values[i] = v
		}
	}
	s := document.Section{ID: "gates", Title: "Gates", Table: abreastTable("Gates", "Gate and bound", runs, rows), Hint: ratioHint(runs)}
	s.Table.Empty = "The runs have no gates."
	if slices.ContainsFunc(runs, func(r Overlaid) bool { return slices.ContainsFunc(r.Result.Gates, notJudged) }) {
		s.Hint += " A value in parentheses was measured, but could not be judged."
	}
	return s
}

func ratioHint(runs []Overlaid) string {
	return "A value with × is the ratio to " + runs[0].Name + ". The rows with different verdicts come first, then the rows with the largest changes."
}

func figuresSection(runs []Overlaid) document.Section {
	var rows []abreast
	for i, run := range runs {
		for _, f := range run.Result.Figures {
			row := rowNamed(&rows, terminal.Clean(f.Name), runs)
			row.higher = f.Better == "higher"
			row.values[i].text = least(f.AtLeast, formatIn(f.Unit, f.Value))
			if !f.AtLeast {
				row.values[i].number = f.Value
			}
		}
	}
	return document.Section{ID: "metrics", Title: "Compared metrics", Table: abreastTable("Compared metrics", "Metric", runs, rows)}
}

func keySection(runs []Overlaid) document.Section {
	var rows []abreast
	for i, run := range runs {
		for _, k := range run.Result.Key {
			for _, r := range k.Rows {
				name, label := terminal.Clean(k.Name), terminal.Clean(r.Label)
				row := rowNamed(&rows, name+" "+label, runs)
				row.name, row.notes = label, []string{name}
				row.values[i] = abreastValue{text: keyText(r), number: keyValue(r)}
			}
		}
	}
	return document.Section{
		ID: "key", Title: "Key metrics", Table: abreastTable("Key metrics", "Verb, etcd member or scheduling result", runs, rows),
		Hint: "p99 of the whole run, or the number of leader changes.",
	}
}

// slowestSection returns the slowest traced request of each load and verb, with the span that has the largest self time.
func slowestSection(runs []Overlaid) document.Section {
	var rows []abreast
	for i, run := range runs {
		if run.Result.Traces == nil {
			continue
		}
		slowest := map[string]result.Trace{}
		for _, x := range run.Result.Traces.Slowest {
			name := terminal.Clean(x.Load + ": " + x.Verb + " " + x.Resource)
			if x.Load != "" && x.Seconds > slowest[name].Seconds {
				slowest[name] = x
			}
		}
		for _, name := range sortedKeys(slowest) {
			x := slowest[name]
			v := abreastValue{text: seconds(x.Seconds), number: &x.Seconds, notes: []string{terminal.Clean(phaseOf(x))}}
			if len(x.Spans) > 0 {
				top := slices.MaxFunc(x.Spans, func(a, b result.TraceSpan) int { return cmp.Compare(a.Self, b.Self) })
				v.notes = append(v.notes, spanOf(top)+", "+seconds(top.Self))
			}
			if run.Link != "" {
				v.link = run.Link + "#" + traceAnchor(x)
			}
			rowNamed(&rows, name, runs).values[i] = v
		}
	}
	return document.Section{
		ID: "slowest", Title: "Slowest traced requests", Table: abreastTable("Slowest traced requests", "Load and request", runs, rows),
		Hint: "Below a time: the phase of the request, and the span with the largest self time (the time in which none of its children ran).",
	}
}
