package report

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

func gatesView(_ context.Context, p *page) (any, error) {
	var rows []gateRow
	said := ""
	for _, g := range ownGates(p.result) {
		row := gateRow{Gate: g, Over: strings.Join(given(overText(g, len(p.result.Measurements.Phases)), otherObjective(g)), ", "), Detail: terminal.Clean(g.Detail)}
		if g.Verdict == result.Pass {
			row.Detail, row.Expr = sourceText(g), ""
		}
		row.More = row.Detail+row.Expr != ""
		if x, ok := traceOf(p.result, g); ok {
			row.Trace = traceAnchor(x)
		}
		if row.Detail == said { // several gates may lack data for the same reason
			row.Detail, row.More = "", row.More && row.Expr != ""
		} else if row.More {
			said = row.Detail
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 && len(p.result.Alerts) > 0 {
		return nil, nil // the table of alerts shows all gates
	}
	return rows, nil
}

type gateRow struct {
	result.Gate
	Over, Detail string
	More         bool   // whether a second line shows the detail or the expression
	Trace        string // target of a link to a trace that shows why the gate failed; empty: no link
}

// otherObjective returns the objective of a gate, unless the gate has the same name.
func otherObjective(g result.Gate) string {
	if g.Objective == g.Name || g.Objective == "expr" || g.Objective == alertObjective {
		return ""
	}
	return g.Objective
}

// sourceText says where the value of a gate comes from. It returns "" if the source is only a phase.
func sourceText(g result.Gate) string {
	if !strings.Contains(g.Detail, ": ") || g.Objective == alertObjective {
		return ""
	}
	return terminal.Clean(g.Detail)
}

// rank matches the text before the source of a gate's value, such as "worst of 4 values: ".
var rank = regexp.MustCompile(`^worst of \d+ values: `)

// usedUp returns the value of a gate in percent of its upper bound, at most 100. It returns "" for a gate
// without a value or an upper bound.
func usedUp(g result.Gate) string {
	if g.Value == nil || g.Op != "<=" || g.Bound <= 0 || math.IsNaN(*g.Value) {
		return ""
	}
	return chart.PercentAt(min(max(*g.Value/g.Bound, 0), 1))
}

func (t *terminalWriter) gates(r result.Result) {
	bad := newTable("", "~", ">", "", "", "")
	var good []result.Gate
	var details []string // text below each row of bad; empty: no text
	var most []int       // maximum number of lines of each text
	var traces []string  // command that shows traces for each row of bad; empty: no command
	said := ""
	for _, g := range ownGates(r) {
		if g.Verdict == result.Pass {
			good = append(good, g)
			continue
		}
		bad.add(gateWord(g), terminal.Clean(g.Name), gateValue(g), gateBound(g), margin(g), overText(g, len(r.Measurements.Phases)))
		bad.style(gateStyle(g), 0, 4)
		detail := terminal.Clean(strings.TrimPrefix(g.Detail, g.Name+": "))
		// A gate that was judged needs no detail, except for an alert: its detail says when, for what and for how long
		// it fired.
		if told := g.Verdict != result.NoData && g.Objective != "alert"; told || detail == said {
			detail = ""
		} else {
			said = detail
		}
		command := ""
		if x, ok := traceOf(r, g); ok && t.reported {
			command = "traces: " + traceCommand(t.dir, "--phase", x.Phase, "--load", x.Load)
		}
		details, most, traces = append(details, detail), append(most, 1), append(traces, command)
		if g.Objective == alertObjective && g.Verdict == result.Fail {
			most[len(most)-1] = 3 // the last line of the detail is the range of the rule
		}
	}
	if len(bad.Rows) > 0 {
		t.line("")
		for i, l := range bad.lines(t.width, t.paint) {
			t.line(l)
			t.detail(details[i], most[i])
			t.detail(traces[i], 4)
		}
		if slices.ContainsFunc(r.Gates, notJudged) {
			t.detail("A value in parentheses was measured, but could not be judged.", 1)
		}
	}
	t.passing(good, len(bad.Rows) == 0)
}

// detail writes the detail text of a gate below the gate. If a report with the whole text was also written, detail
// writes at most `most` lines.
func (t *terminalWriter) detail(text string, most int) {
	const indent = 9
	lines := terminal.Wrap(text, t.width-indent)
	if t.reported && len(lines) > most {
		rest := strings.Join(lines[most-1:], " ")
		lines = append(lines[:most-1:most-1], terminal.Shorten(rest, t.width-indent))
	}
	for _, l := range lines {
		t.line(t.paint("dim", strings.Repeat(" ", indent)+l))
	}
}

// overText names the phases in which a gate broke its bound. If it did not break the bound, overText names the phases
// that the gate covers. phases is the number of phases of the run.
func overText(g result.Gate, phases int) string {
	if n := len(g.BrokenIn); n > 3 {
		return fmt.Sprintf("failed in %d of %d phases", n, len(g.Over))
	} else if n > 0 {
		return "failed in " + phaseNames(g.BrokenIn)
	}
	switch n := len(g.Over); {
	case n > 1 && n >= phases:
		return "all phases"
	case n > 3:
		return fmt.Sprintf("%d phases", n)
	}
	return phaseNames(g.Over)
}

// phaseNames returns a text such as "phase storm" or "phases storm, recovery".
func phaseNames(names []string) string {
	text := "phase "
	if len(names) > 1 {
		text = "phases "
	}
	return text + terminal.Shorten(terminal.Clean(strings.Join(names, ", ")), 30)
}

// passing writes the gates that passed. If all gates of the run passed and there are few, it adds the sources of their
// values. Otherwise it writes two gates on a line if there is room.
func (t *terminalWriter) passing(good []result.Gate, all bool) {
	if len(good) == 0 {
		return
	}
	sourced := all && len(good) <= 8
	columns := [][]string{passed(good, t.width, sourced)}
	left := 0
	if half := (len(good) + 1) / 2; len(good) > 3 && !sourced {
		two := [][]string{passed(good[:half], math.MaxInt, false), passed(good[half:], math.MaxInt, false)}
		left = widest(two[0])
		if left+4+widest(two[1]) <= t.width {
			columns = two
		}
	}
	t.line("")
	for i, l := range columns[0] {
		if len(columns) == 2 && i < len(columns[1]) {
			l += strings.Repeat(" ", left-terminal.TextWidth(l)+4) + columns[1][i]
		}
		t.line(strings.ReplaceAll(l, word(result.Pass)+"  ", t.paint("pass", word(result.Pass))+"  "))
	}
}

// passed formats each gate as a line of at most width columns, with the source of its value if sourced is set.
func passed(good []result.Gate, width int, sourced bool) []string {
	tab := newTable("", "~", ">", "", "~")
	for _, g := range good {
		source := ""
		if sourced {
			where, _, _ := strings.Cut(rank.ReplaceAllString(sourceText(g), ""), " (")
			where, _, _ = strings.Cut(where, "; ") // the report has the whole text
			source = strings.Join(given(otherObjective(g), where), ", ")
		}
		tab.add(word(g.Verdict), terminal.Clean(g.Name), gateValue(g), gateBound(g), source)
	}
	return tab.lines(width, noPaint)
}

func widest(lines []string) (width int) {
	for _, l := range lines {
		width = max(width, terminal.TextWidth(l))
	}
	return width
}

// notJudged reports whether a gate has a value in parentheses, which was measured but could not be judged.
func notJudged(g result.Gate) bool { return g.Value == nil && g.Withheld != nil }

// withheld reports whether a row has a value in parentheses.
func withheld(rows []gateRow) bool {
	return slices.ContainsFunc(rows, func(r gateRow) bool { return notJudged(r.Gate) })
}
