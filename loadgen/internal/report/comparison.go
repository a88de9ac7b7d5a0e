package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// WriteComparison writes comparison.html in dir, next to the variants' directories.
func WriteComparison(dir string, c result.Comparison) error {
	return publish(dir, result.ComparisonHTMLFile, func(w io.Writer) error { return ComparisonHTML(w, c) })
}

// Comparison writes a comparison of variants for a terminal: the outcome of each variant, and the compared figures
// (metrics) side by side. Each value is followed by its ratio to the value of the first variant.
func Comparison(w io.Writer, c result.Comparison, o TerminalOptions) error {
	t := newTerminal(o)
	v := verdictOf(c)
	t.title(style(v), word(v), terminal.Clean(c.Scenario)+"  "+ranOf(c))
	t.variants(c)
	t.compared(c)
	for _, v := range c.Variants {
		t.grown(v.Grown, terminal.Clean(c.Variants[0].Name), terminal.Clean(v.Name))
	}
	t.reportAt(o.Dir, result.ComparisonHTMLFile)
	return t.writeTo(w)
}

// verdictOf returns the verdict of a comparison, which is pass only if every variant passed.
func verdictOf(c result.Comparison) result.Verdict {
	v := result.Pass
	for _, x := range c.Variants {
		switch {
		case x.Verdict == result.Fail:
			return result.Fail
		case x.Verdict != result.Pass:
			v = result.NoData
		}
	}
	return v
}

// ratioNote returns a sentence that explains the ratios after the values, or "" if there are no ratios.
func ratioNote(c result.Comparison) string {
	for _, r := range c.Rows {
		for _, v := range r.Values {
			if v.Ratio != nil {
				return terminal.Clean(fmt.Sprintf("A value with × is the ratio to variant %s.", c.Variants[0].Name))
			}
		}
	}
	return ""
}

// when returns the start and the length of a comparison as text.
func when(c result.Comparison) string {
	text := "started " + c.Started.UTC().Format("2006-01-02 15:04:05 UTC")
	if c.Ended.IsZero() {
		return text + ", did not finish"
	}
	return text + ", took " + seconds(c.Ended.Sub(c.Started).Seconds())
}

// ranOf returns a count such as "2 of 3 variants ran, 1 passed".
func ranOf(c result.Comparison) string {
	ran, passed := 0, 0
	for _, v := range c.Variants {
		if v.NotRun == "" {
			ran++
		}
		if v.Verdict == result.Pass {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d variants ran, %d passed", ran, len(c.Variants), passed)
}

func (t *terminalWriter) variants(c result.Comparison) {
	tab := newTable("VARIANT", "VERDICT", "~DESCRIPTION AND CHANGED FIELDS")
	tab.addVariants(c)
	t.section(tab)
	for _, v := range c.Variants {
		for _, why := range reasonsOf(v) {
			t.line(terminal.Shorten(terminal.Clean(v.Name+": "+why), t.width))
		}
	}
}

func (t *table) addVariants(c result.Comparison) {
	for _, v := range c.Variants {
		t.add(terminal.Clean(v.Name), string(v.Verdict), terminal.Clean(whatItIs(v)))
		t.style(style(v.Verdict), 1)
	}
}

func whatItIs(v result.Variant) string {
	parts := v.Set
	if v.Description != "" {
		parts = append([]string{v.Description}, parts...)
	}
	return strings.Join(parts, "; ")
}

func reasonsOf(v result.Variant) []string {
	if v.NotRun != "" {
		return []string{"this variant did not run: " + v.NotRun}
	}
	return v.Reasons
}

func (t *terminalWriter) compared(c result.Comparison) {
	if len(c.Rows) == 0 {
		t.line("")
		t.line("no metric is compared (list metrics under compare: in the scenario)")
		return
	}
	tab := byFigure(c)
	if turned := byVariant(c); tab.natural() > t.width && turned.natural() < tab.natural() {
		tab = turned
	}
	t.section(tab)
	if note := ratioNote(c); note != "" {
		t.line(t.paint("dim", terminal.Shorten(note, t.width)))
	}
	for _, r := range c.Rows {
		for i, v := range r.Values {
			if v.Value == nil && c.Variants[i].NotRun == "" {
				t.line(terminal.Shorten(terminal.Clean(fmt.Sprintf("%s, %s: no data: %s", r.Name, c.Variants[i].Name, v.Detail)), t.width))
			}
		}
	}
}

// byFigure returns a table for few variants, with a row per figure (compared metric). Each variant has two columns: the
// value and its ratio.
func byFigure(c result.Comparison) *table {
	tab := newTable("~METRIC")
	for _, v := range c.Variants {
		tab.Head = append(tab.Head, head{Text: terminal.Clean(v.Name), Numeric: true}, head{Numeric: true})
	}
	for _, r := range c.Rows {
		row := []string{terminal.Clean(r.Name)}
		for _, v := range r.Values {
			row = append(row, valueOf(r, v), ratioOf(v))
		}
		tab.add(row...)
	}
	return tab
}

// byVariant returns a table for many variants, with a row per variant and a column per figure (compared metric). It
// breaks the names of the figures into several lines.
func byVariant(c result.Comparison) *table {
	tab := newTable("")
	names := make([][]string, len(c.Rows))
	lines := 0
	for i, r := range c.Rows {
		tab.Head = append(tab.Head, head{Numeric: true})
		names[i] = inLines(terminal.Clean(r.Name), 14)
		lines = max(lines, len(names[i]))
	}
	for line := range lines {
		row := []string{""}
		if line == lines-1 {
			row[0] = "VARIANT"
		}
		for _, name := range names {
			text := ""
			if above := lines - len(name); line >= above {
				text = name[line-above]
			}
			row = append(row, text)
		}
		tab.add(row...)
		for column := range row {
			tab.style("head", column)
		}
	}
	for i, v := range c.Variants {
		row := []string{terminal.Clean(v.Name)}
		for _, r := range c.Rows {
			row = append(row, fmt.Sprintf("%s%7s", valueOf(r, r.Values[i]), ratioOf(r.Values[i])))
		}
		tab.add(row...)
	}
	return tab
}

// inLines breaks a name into lines of at most width characters, if possible. It breaks only after hyphens.
func inLines(name string, width int) (lines []string) {
	line := ""
	for word := range strings.SplitAfterSeq(name, "-") {
		if line != "" && len(line)+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line += word
	}
	return append(lines, line)
}

func valueOf(r result.Row, v result.Value) string {
	if v.Value == nil {
		return chart.None
	}
	return least(v.AtLeast, chart.Format(scenario.Unit(r.Unit), *v.Value))
}

// ratioOf formats the ratio of a value with three digits, such as "0.42×". It returns "" for a value without ratio.
func ratioOf(v result.Value) string {
	if v.Ratio == nil {
		return ""
	}
	return chart.Number(*v.Ratio, 3) + "×"
}

// ComparisonHTML writes comparison.html. The page needs neither network nor scripts. It links to the reports of the
// variants, which are in subdirectories.
func ComparisonHTML(w io.Writer, c result.Comparison) error {
	d := document.Document{
		Title: terminal.Clean(c.Scenario) + ": variants", Heading: terminal.Clean(c.Scenario), Line: ranOf(c) + "; " + when(c),
		Style: style(verdictOf(c)), Word: word(verdictOf(c)), Lead: given(c.Description),
		Sections: []document.Section{comparedSection(c)},
	}
	for _, v := range c.Variants {
		if len(v.Grown) > 0 {
			d.Sections = append(d.Sections, grownTable(v.Grown, terminal.Clean(c.Variants[0].Name), terminal.Clean(v.Name)).section("grown-"+v.Name))
		}
	}
	d.Sections = append(d.Sections, variantsSection(c))
	return document.Write(w, d)
}

// comparedSection returns the table of the figures (compared metrics), with a column for each variant.
func comparedSection(c result.Comparison) document.Section {
	t := newTable("Metric")
	t.Caption, t.Empty = "Compared metrics", "No metric is compared (list metrics under compare: in the scenario)."
	for _, v := range c.Variants {
		t.Head = append(t.Head, head{Text: terminal.Clean(v.Name), Numeric: true})
	}
	if len(c.Rows) > 0 {
		t.Note = strings.TrimSpace(ratioNote(c) + " A dash means no data. Each bar shows the value relative to the largest value of its row.")
	}
	s := t.section("compared")
	for _, r := range c.Rows {
		cells := []document.Cell{{Text: terminal.Clean(r.Name), Small: given(r.Objective + "; " + r.Better + " is better")}}
		for _, v := range r.Values {
			cells = append(cells, document.Cell{Text: valueOf(r, v), Strong: true, Dim: ratioOf(v), Bar: barOf(r, v), Small: given(v.Detail)})
		}
		s.Table.Rows = append(s.Table.Rows, document.Row{Cells: cells})
	}
	return s
}

// variantsSection returns the table of the variants, with links to the reports of their runs.
func variantsSection(c result.Comparison) document.Section {
	t := newTable("Variant", "Verdict", "Description and changed fields")
	t.Caption = "Variants"
	t.addVariants(c)
	s := t.section("variants")
	for i, v := range c.Variants {
		cells := s.Table.Rows[i].Cells
		if v.NotRun == "" {
			cells[0].To = reportIn(v.Name)
		}
		cells[2].Small = cleaned(reasonsOf(v))
	}
	return s
}

// barOf returns the length of the bar for v: its absolute value in percent of the largest absolute value in row r. It
// returns nil if v has no value, or if all values of the row are 0.
func barOf(r result.Row, v result.Value) *int {
	largest := 0.0
	for _, w := range r.Values {
		if w.Value != nil {
			largest = max(largest, math.Abs(*w.Value))
		}
	}
	if v.Value == nil || largest == 0 {
		return nil
	}
	return new(int(math.Round(100 * math.Abs(*v.Value) / largest)))
}
