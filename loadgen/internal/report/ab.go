package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/result"
)

// WriteAB writes ab.html and junit.xml to dir.
func WriteAB(dir string, c result.AB) error {
	for name, write := range map[string]func(io.Writer, result.AB) error{result.ABHTMLFile: ABHTML, result.JUnitFile: ABJUnit} {
		if err := publish(dir, name, func(w io.Writer) error { return write(w, c) }); err != nil {
			return err
		}
	}
	return nil
}

func answerVerdict(a result.Answer) result.Verdict {
	switch a {
	case result.Regressed:
		return result.Fail
	case result.CouldNotTell:
		return result.NoData
	}
	return result.Pass
}

// AB writes an A/B comparison for a terminal.
func AB(w io.Writer, c result.AB, o TerminalOptions) error {
	t := newTerminal(o)
	t.title(style(answerVerdict(c.Answer)), strings.ToUpper(string(c.Answer)), terminal.Clean(c.Scenario)+"  "+abTally(c))
	t.line("")
	for _, s := range []struct {
		name string
		side result.Side
	}{{"A", c.A}, {"B", c.B}} {
		t.line(terminal.Shorten(s.name+"  "+terminal.Clean(sideText(s.side)), t.width))
	}
	if c.Sets != nil && len(c.Sets.Differences) > 0 {
		t.section(differences("~DIFFERS", c.Sets.Differences))
	}
	tab := newTable("~METRIC", ">A", ">B", ">CHANGE", ">BOUNDS", ">SPREAD", "ANSWER")
	dim := false
	figures, without := abFigures(c)
	for _, f := range figures {
		if !f.Gated && !dim {
			dim = true
			tab.add("no effect on the answer:")
			tab.style("dim", 0)
		}
		tab.add(slices.Concat([]string{terminal.Clean(f.Name)}, abValues(f), []string{string(f.Answer)})...)
		if f.Gated {
			tab.style(style(answerVerdict(f.Answer)), 6)
		}
	}
	t.section(tab)
	t.grown(c.Grown, "A", "B")
	for _, line := range terminal.Wrap(abNote(c)+".", t.width) {
		t.line(t.paint("dim", line))
	}
	for _, why := range slices.Concat(c.Reasons, c.Notes, without) { // in full: users copy commands from them
		t.wrapped("", why)
	}
	for _, p := range c.Pairs {
		if p.Thrown != "" && p.Number > 0 { // pair 0 warms up the machine and never counts
			t.line(terminal.Shorten(terminal.Clean(fmt.Sprintf("pair %d was discarded: %s", p.Number, p.Thrown)), t.width))
		}
	}
	if o.Dir != "" {
		t.reportAt(o.Dir, result.ABHTMLFile)
	}
	return t.writeTo(w)
}

// differences returns a table of the facts that differ between A and B.
func differences(heading string, all []result.Difference) *table {
	t := newTable(heading, "A", "B")
	for _, d := range all {
		t.add(terminal.Clean(d.Name), terminal.Clean(cmp.Or(d.A, chart.None)), terminal.Clean(cmp.Or(d.B, chart.None)))
	}
	return t
}

// abTally describes how many pairs or runs were compared, such as "9 pairs, 1 discarded".
func abTally(c result.AB) string {
	if c.Sets != nil {
		text := fmt.Sprintf("%d runs of A and %d runs of B, not paired", len(c.Sets.A), len(c.Sets.B))
		if c.Thrown > 0 {
			text += fmt.Sprintf(", %d runs discarded", c.Thrown)
		}
		return text
	}
	counted := 0
	for _, p := range c.Pairs {
		if p.Number > 0 && p.Thrown == "" {
			counted++
		}
	}
	text := fmt.Sprintf("%d pairs", counted)
	if c.Thrown > 0 {
		text += fmt.Sprintf(", %d discarded", c.Thrown)
	}
	return text
}

func sideText(s result.Side) string {
	text := "the unchanged scenario"
	if len(s.Spec) > 0 {
		text = strings.Join(s.Spec, " ")
	}
	if s.Revision != "" {
		text += " (" + s.Revision[:min(12, len(s.Revision))] + ")"
	}
	if s.Versions.Kubernetes != "" {
		text += ", Kubernetes " + s.Versions.Kubernetes
	}
	return text
}

// abFigures returns the figures (compared metrics) to show. It leaves out figures that do not decide the answer and
// have no data in any run. `without` has one line that names these figures, or is empty.
func abFigures(c result.AB) (figures []result.ABFigure, without []string) {
	var names []string
	for _, f := range c.Figures {
		if !f.Gated && f.A == nil && f.B == nil && len(c.Pairs) > 0 {
			names = append(names, f.Name)
			continue
		}
		figures = append(figures, f)
	}
	if len(names) > 0 {
		without = []string{"metrics without data in any run: " + strings.Join(names, ", ")}
	}
	return figures, without
}

// abNote returns the text that explains the columns of the A/B table.
func abNote(c result.AB) string {
	return fmt.Sprintf("%s. A positive change is worse. Each bound of the change has %.0f%% confidence. A metric regressed if its change is statistically significant and at least %s. It did not regress if the upper bound of the change is below %s. Spread is the standard deviation of the changes",
		abStatistics(c), 100*c.Plan.Confidence, abPercent(&c.Plan.Change), abPercent(&c.Plan.Margin))
}

// olderStatistic describes how A, B and the change were computed in files that older versions wrote.
const olderStatistic = "A and B are medians, and the change is the geometric mean of B/A"

// abStatistics describes how A, B and their changes are computed. It names the figures (compared metrics) that are not
// computed as geometric means.
func abStatistics(c result.AB) string {
	of, others := "pairs", map[result.Statistic][]string{}
	if c.Sets != nil {
		of = "runs"
	}
	for _, f := range c.Figures {
		switch {
		case f.Statistic == result.GeometricMean, f.A == nil && f.B == nil:
		case f.Statistic == "": // written by an older version
			others[olderStatistic] = append(others[olderStatistic], terminal.Clean(f.Name))
		default:
			others[f.Statistic] = append(others[f.Statistic], terminal.Clean(f.Name))
		}
	}
	text := "A, B and the change are geometric means over the " + of
	for _, how := range slices.Sorted(maps.Keys(others)) {
		text += fmt.Sprintf("; for %s: %s", strings.Join(others[how], ", "), how)
	}
	return text
}

// abValues returns the values of a figure (compared metric) in A and in B, its change, the bounds of the change, and
// the spread.
func abValues(f result.ABFigure) []string {
	bounds, spread := chart.None, chart.None
	if f.Low != nil && f.High != nil {
		bounds = abPercent(f.Low) + " to " + abPercent(f.High)
	}
	if f.Spread != nil {
		spread = fmt.Sprintf("%.1f%%", 100**f.Spread)
	}
	return []string{formatIn(f.Unit, f.A), formatIn(f.Unit, f.B), abPercent(f.Change), bounds, spread}
}

func abPercent(v *float64) string {
	if v == nil {
		return chart.None
	}
	return digits.Change(*v)
}

// ABSummary writes an A/B comparison as Markdown, for a pull request.
func ABSummary(w io.Writer, c result.AB) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n%s. A: %s. B: %s.\n", strings.ToUpper(string(c.Answer)), inMarkdown(c.Scenario), abTally(c), inMarkdown(sideText(c.A)), inMarkdown(sideText(c.B)))
	if c.Sets != nil && len(c.Sets.Differences) > 0 {
		tab := newTable("differs", "A", "B")
		for _, d := range c.Sets.Differences {
			tab.add(inMarkdown(d.Name), inMarkdown(cmp.Or(d.A, chart.None)), inMarkdown(cmp.Or(d.B, chart.None)))
		}
		tab.markdown(&b)
	}
	tab := newTable("answer", "metric", ">A", ">B", ">change", ">bounds of change", ">spread")
	figures, without := abFigures(c)
	for _, f := range figures {
		answer := string(f.Answer)
		switch {
		case !f.Gated:
			answer += " (does not count)"
		case answerVerdict(f.Answer) != result.Pass:
			answer = "**" + answer + "**"
		}
		tab.add(append([]string{answer, inMarkdown(f.Name)}, abValues(f)...)...)
	}
	tab.markdown(&b)
	fmt.Fprintf(&b, "\n%s.\n\n", inMarkdown(abNote(c)))
	for _, why := range slices.Concat(c.Reasons, c.Notes, without) {
		fmt.Fprintf(&b, "- %s\n", inMarkdown(why))
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// ABJUnit writes junit.xml with a test case for each figure (compared metric) that decides the answer. If the
// comparison does not pass although all these figures do, it adds a test case with the overall answer.
func ABJUnit(w io.Writer, c result.AB) error {
	s := junitSuite{Name: terminal.Clean(c.Scenario), Timestamp: c.Started.UTC().Format("2006-01-02T15:04:05"), Time: junitTime(max(0, c.Ended.Sub(c.Started).Seconds()))}
	s.Properties = []junitProperty{{"a", terminal.Clean(sideText(c.A))}, {"b", terminal.Clean(sideText(c.B))}, {"pairs", abTally(c)}}
	if c.Sets != nil {
		for _, d := range c.Sets.Differences {
			s.Properties = append(s.Properties, junitProperty{"differs: " + terminal.Clean(d.Name), terminal.Clean(d.A + " | " + d.B)})
		}
	}
	bad := false
	for _, f := range c.Figures {
		if !f.Gated {
			continue
		}
		bad = bad || answerVerdict(f.Answer) != result.Pass
		said := fmt.Sprintf("change %s, bounds %s to %s", abPercent(f.Change), abPercent(f.Low), abPercent(f.High))
		one := junitCase{Name: terminal.Clean(f.Name), Classname: s.Name + ".figures", Time: junitTime(0), Output: said}
		problem := &junitProblem{Message: string(f.Answer) + ": " + said, Type: string(f.Answer), Text: terminal.Clean(f.Detail)}
		switch answerVerdict(f.Answer) {
		case result.Fail:
			one.Failure = problem
		case result.NoData:
			one.Error = problem
		}
		s.Cases = append(s.Cases, one)
	}
	if c.ExitCode != 0 && !bad {
		why := terminal.Clean(strings.Join(slices.Concat(c.Reasons, c.Notes), "\n"))
		problem := &junitProblem{Message: string(c.Answer), Type: string(c.Answer), Text: why}
		s.Cases = append(s.Cases, junitCase{Name: "answer", Classname: s.Name, Time: junitTime(0), Error: problem})
	}
	return writeJUnit(w, s)
}

// ABHTML writes ab.html, with a dot for each pair. The page needs neither network nor scripts.
func ABHTML(w io.Writer, c result.AB) error {
	figures, without := abFigures(c)
	d := document.Document{
		Title: terminal.Clean(c.Scenario) + ": A and B", Heading: terminal.Clean(c.Scenario), Line: abTally(c),
		Style: style(answerVerdict(c.Answer)), Word: string(c.Answer),
		Lead: cleaned(slices.Concat([]string{"A: " + sideText(c.A), "B: " + sideText(c.B)}, c.Reasons, c.Notes, without)),
	}
	if c.Sets != nil {
		t := differences("Fact", c.Sets.Differences)
		t.Caption, t.Empty = "Differences between the runs of A and B", "Configuration, versions, host and seeds are the same."
		d.Sections = append(d.Sections, t.section("differences"))
	}
	d.Sections = append(d.Sections, abSection(c, figures))
	if len(c.Grown) > 0 {
		d.Sections = append(d.Sections, grownTable(c.Grown, "A", "B").section("grown"))
	}
	if len(c.Pairs) > 0 {
		d.Sections = append(d.Sections, pairsSection(c.Pairs))
	}
	return document.Write(w, d)
}

// abSection returns the table of the figures (compared metrics), with a drawing of the changes of all pairs.
func abSection(c result.AB, figures []result.ABFigure) document.Section {
	t := newTable("Metric", "Answer", ">A", ">B", ">Change", ">Bounds", ">Spread", "Change of each pair")
	t.Caption = "Compared metrics"
	t.Note = abNote(c) + ". In the chart, each dot is the change of a pair, and the bar reaches from the lower to the upper bound of the change. The solid line marks no change. The dashed lines mark two limits: a regression is a change of at least the larger one, and “not regressed” needs an upper bound below the smaller one."
	for _, f := range figures {
		t.add(append([]string{terminal.Clean(f.Name), string(f.Answer)}, abValues(f)...)...)
		if f.Gated {
			t.style(style(answerVerdict(f.Answer)), 1)
		}
	}
	s := t.section("figures")
	for i, f := range figures {
		row := &s.Table.Rows[i]
		row.Cells[0].Small = given(f.Better+" is better", f.Advice, f.Detail)
		if !f.Gated {
			row.Cells[1].Dim = "(does not count)"
		}
		row.Cells = append(row.Cells, document.Cell{Drawing: abDrawing(c.Plan, f)})
	}
	return s
}

// abDrawing draws the changes of all pairs as dots on an axis with 0 in the middle, and the bounds of the change as a
// bar.
func abDrawing(p result.Plan, f result.ABFigure) *document.Drawing {
	reach := p.Margin
	for _, x := range f.Changes {
		reach = max(reach, math.Abs(math.Expm1(x)))
	}
	reach = min(1.05*reach, 10)
	at := func(change float64) float64 { return 50 + 50*max(-1, min(1, change/reach)) }
	d := &document.Drawing{Width: 100, Height: 10, Label: fmt.Sprintf("Changes of %d pairs, on an axis from -%.0f%% to +%.0f%%", len(f.Changes), 100*reach, 100*reach)}
	if f.Low != nil && f.High != nil {
		d.Shapes = append(d.Shapes, document.Shape{X: at(*f.Low), Y: 3, W: max(0.3, at(*f.High)-at(*f.Low)), H: 4})
	}
	line := func(class string, x float64) document.Shape {
		return document.Shape{Class: class, X: at(x), X2: at(x), Y2: d.Height}
	}
	d.Shapes = append(d.Shapes, line("", 0), line("limit", p.Change), line("limit", p.Margin))
	for _, x := range f.Changes {
		d.Shapes = append(d.Shapes, document.Shape{Dot: true, X: at(math.Expm1(x)), Y: d.Height / 2})
	}
	return d
}

// pairsSection returns the table of the pairs, with links to the reports of the runs.
func pairsSection(pairs []result.Pair) document.Section {
	t := newTable("Pair", "Order of the runs", "Verdict of A", "Verdict of B", "Counts")
	t.Caption = "Pairs"
	for _, p := range pairs {
		counts := "yes"
		switch {
		case p.Number == 0:
			counts = "no: the first pair only warms the machine up"
		case p.Thrown != "":
			counts = "discarded: " + terminal.Clean(p.Thrown)
		}
		t.add(chart.Count(p.Number), p.Order, cmp.Or(string(p.A.Verdict), chart.None), cmp.Or(string(p.B.Verdict), chart.None), counts)
	}
	s := t.section("pairs")
	for i, p := range pairs {
		s.Table.Rows[i].Cells[2].To, s.Table.Rows[i].Cells[3].To = reportIn(p.A.Dir), reportIn(p.B.Dir)
	}
	return s
}

// reportIn returns the path of the report of the run in dir, or "" if dir is "".
func reportIn(dir string) string {
	if dir == "" {
		return ""
	}
	return dir + "/" + result.HTMLFile
}
