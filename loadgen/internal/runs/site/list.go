package site

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// pageLength is the number of rows of the list on one page. A static list has all rows.
const pageLength = 100

// view selects the rows of the list: a filter, and the number of the first row.
type view struct {
	filter runs.Filter
	from   int
}

// listPage returns the list of runs.
func listPage(s runs.Snapshot, v view, latest news, groups []group, l links) document.Document {
	selected := v.filter.Select(s.Entries)
	d := l.newDocument("Runs")
	if v.filter.In != "" {
		d.Heading = "Runs of " + v.filter.In
	}
	d.Links = l.navigation(groups)
	d.Line = fmt.Sprintf("%d of %d match", len(selected), len(s.Entries))
	if n := s.Total - len(s.Entries); n > 0 {
		d.Line += fmt.Sprintf("; %d directories are still being read", n)
	}
	list := document.Section{ID: "list", Form: filterForm(s.Entries, v.filter, l)}
	length := pageLength
	if l.static {
		length = len(selected)
	}
	from := max(0, min(v.from, len(selected)))
	shown := selected[from:min(from+length, len(selected))]
	if len(shown) < len(selected) {
		d.Line += fmt.Sprintf("; %d to %d are shown", from+1, from+len(shown))
	}
	list.Table = &document.Table{
		ID: "runs", Class: "list", Label: "Runs", Empty: "No run matches.",
		Head: []document.Column{{Text: "Run"}, {Text: "Verdict"}, {Text: "Started (UTC)"}, {Text: "Versions"}, {Text: "Gates, failures and causes"}},
	}
	if !l.static {
		list.Table.Form, list.Table.Submit = "compare", "Compare selected runs"
	}
	for _, e := range shown {
		list.Table.Rows = append(list.Table.Rows, rowOf(s, e, l))
	}
	list.Links = pages(v, len(selected), from, l)
	if !l.static {
		list.Links = append(list.Links, document.Link{Text: "All matching entries as JSON", To: "runs.json" + v.query("")})
	}
	if len(latest.changes) > 0 {
		d.Sections = append(d.Sections, document.Section{ID: "changes", Title: "Latest changes for the worse", Table: changesTable(latest.changes, l, "")})
	}
	if len(latest.spikes) > 0 {
		d.Sections = append(d.Sections, spikesSection(latest.spikes, l))
	}
	if len(d.Sections) > 0 {
		list.Title = "All runs"
	}
	d.Sections = append(d.Sections, list)
	if text := leftOut(s); text != nil {
		d.Sections = append(d.Sections, document.Section{ID: "foreign", Title: "Directories without a run", Text: text})
	}
	return d
}

// leftOut returns sentences about the directories that are not in the list.
func leftOut(s runs.Snapshot) (text []string) {
	if len(s.Foreign) > 0 {
		text = append(text, strings.Join(s.Foreign, ", "))
	}
	if s.Ignored > 0 {
		text = append(text, fmt.Sprintf("%d more directories with runs are left out, because the list is full", s.Ignored))
	}
	return text
}

// query returns the filter as query parameters, with the number of the first row.
func (v view) query(from string) string {
	f := v.filter
	return query("scenario", f.Scenario, "variant", f.Variant, "verdict", f.Verdict, "version", f.Version,
		"host", f.Host, "label", f.Label, "kind", f.Kind, "in", f.In, "text", f.Text, "from", from)
}

// pages returns links to the newer and older rows of the list.
func pages(v view, n, from int, l links) (all []document.Link) {
	if l.static {
		return nil
	}
	if from > 0 {
		all = append(all, document.Link{Text: "Newer", To: "./" + v.query(fmt.Sprint(max(0, from-pageLength)))})
	}
	if from+pageLength < n {
		all = append(all, document.Link{Text: "Older", To: "./" + v.query(fmt.Sprint(from+pageLength))})
	}
	return all
}

func filterForm(all []*runs.Entry, f runs.Filter, l links) *document.Form {
	choices := runs.Choices(all)
	form := &document.Form{To: l.home(), Submit: "Filter", Fields: []document.Field{{Name: "text", Label: "Search in failures, names, labels and --set", Value: f.Text}}}
	if f.In != "" {
		form.Fields = append(form.Fields, document.Field{Name: "in", Label: "In the comparison", Value: f.In})
	}
	for _, field := range []document.Field{
		{Name: "scenario", Label: "Scenario", Value: f.Scenario}, {Name: "variant", Label: "Variant", Value: f.Variant},
		{Name: "verdict", Label: "Verdict", Value: f.Verdict}, {Name: "version", Label: "Versions", Value: f.Version},
		{Name: "label", Label: "Label", Value: f.Label}, {Name: "host", Label: "Host", Value: f.Host}, {Name: "kind", Label: "Kind", Value: f.Kind},
	} {
		field.Options = choices[field.Name]
		if field.Value != "" && !slices.Contains(field.Options, field.Value) {
			field.Options = append(field.Options, field.Value)
		}
		if len(field.Options) > 1 || field.Value != "" {
			form.Fields = append(form.Fields, field)
		}
	}
	return form
}

// maxReasons is the maximum number of failures in a row of the list.
const maxReasons = 3

func rowOf(s runs.Snapshot, e *runs.Entry, l links) document.Row {
	name := document.Cell{Text: path.Base(e.Path), To: l.run(e), Small: []string{e.Name()}}
	if dir := path.Dir(e.Path); dir != "." {
		name.Small = append(name.Small, "in "+dir)
	}
	if e.Kind == runs.Run {
		if !l.static && e.Judged() {
			name.Check = e.Path
		}
	} else {
		name.Dim = string(e.Kind)
		if n := len(s.Members(e.Path)); n > 0 && !l.static {
			name.Links = append(name.Links, document.Link{Text: digits.Count(n, "run"), To: l.home("in", e.Path)})
		}
	}
	if tags := append(e.LabelTexts(), e.Settings...); len(tags) > 0 {
		name.Small = append(name.Small, strings.Join(tags, ", "))
	}
	verdict := document.Cell{Text: e.Verdict, Chip: e.Style}
	if e.State != "" {
		verdict.Small = []string{"phase " + e.State}
	}
	started := document.Cell{Text: when(e)}
	if e.Seconds > 0 {
		started.Small = []string{chart.Format(scenario.Seconds, e.Seconds)}
	}
	versions := document.Cell{Text: "Kubernetes " + e.Versions.Kubernetes, Small: []string{"Stormglass " + e.Versions.Stormglass}}
	if e.Versions.Kubernetes == "" {
		versions = document.Cell{}
	}
	why := document.Cell{Dim: gatesOf(e), Small: e.Why[:min(len(e.Why), maxReasons)]}
	if n := len(e.Why) - maxReasons; n > 0 {
		why.Small = append(slices.Clone(why.Small), fmt.Sprintf("and %d more", n))
	}
	row := document.Row{Cells: []document.Cell{name, verdict, started, versions, why}}
	if l.static {
		row.Search, row.Facets = e.SearchText(), e.Facets()
		row.Facets["label"] = strings.Join(e.LabelTexts(), "\n")
	}
	return row
}

// maxGates is the maximum number of gates in a row of the list.
const maxGates = 4

// gatesOf returns the values of the first gates of a run, as text.
func gatesOf(e *runs.Entry) string {
	var texts []string
	gates := 0
	for _, v := range e.Values {
		if v.Verdict != "" {
			gates++
		}
		if v.Verdict != "" && v.Value != nil && len(texts) < maxGates {
			texts = append(texts, v.Name+" "+report.Amount(v.Unit, *v.Value))
		}
	}
	text := strings.Join(texts, ", ")
	if n := gates - len(texts); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// maxNews is the maximum number of changes, and of spikes, that the page with the list shows.
const maxNews = 5

// news holds the latest changes for the worse in all groups, and the spikes in the newest runs of the groups.
type news struct {
	changes []change
	spikes  []spike
}

// newest is the number of latest runs of a group in which spikes count as news.
const newest = 30

func latestNews(groups []group) (n news) {
	for _, g := range groups {
		t := runs.Trend(g.all)
		for _, c := range changesOf(g, t) {
			if c.worse() {
				n.changes = append(n.changes, c)
			}
		}
		for _, s := range spikesOf(g, t) {
			if s.news() && !s.run.Started.Before(g.all[max(0, len(g.all)-newest)].Started) {
				n.spikes = append(n.spikes, s)
			}
		}
	}
	slices.SortStableFunc(n.changes, func(a, b change) int { return b.after.Started.Compare(a.after.Started) })
	slices.SortStableFunc(n.spikes, func(a, b spike) int { return b.run.Started.Compare(a.run.Started) })
	n.changes, n.spikes = n.changes[:min(len(n.changes), maxNews)], n.spikes[:min(len(n.spikes), maxNews)]
	return n
}
