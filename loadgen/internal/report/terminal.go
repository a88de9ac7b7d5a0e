package report

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// TerminalOptions of a summary.
type TerminalOptions struct {
	// Color allows ANSI colours; without them the words say it all.
	Color bool
	// Width of the terminal in columns. Zero means 100; no line is longer.
	Width int
	// Dir is the run directory, for the path of the report. Empty: none was written.
	Dir string
}

// The widths a summary is made for. Below the least, a terminal wraps.
const (
	leastWidth   = 72
	defaultWidth = 100
	mostWidth    = 120
)

// Terminal writes the summary: what somebody woken at 3 AM must know, most
// urgent first, on one screen.
func Terminal(w io.Writer, r result.Result, o TerminalOptions) error {
	t := newTerminal(o)
	t.header(r)
	t.reasons(r)
	t.gates(r)
	t.keyMetrics(r)
	t.phases(r)
	t.rollouts(r)
	t.recovery(r)
	t.breakdown(r)
	t.cost(r)
	if t.reported {
		t.line("")
		t.line("report  " + chart.Clean(filepath.Join(o.Dir, result.HTMLFile)))
	}
	_, err := io.WriteString(w, strings.Join(t.out, "\n")+"\n")
	return err
}

type terminal struct {
	out      []string
	width    int
	paint    painter
	reported bool // there is a report besides
}

func newTerminal(o TerminalOptions) *terminal {
	t := &terminal{width: o.Width, paint: noPaint, reported: o.Dir != ""}
	if t.width == 0 {
		t.width = defaultWidth
	}
	t.width = min(max(t.width, leastWidth), mostWidth)
	if o.Color {
		t.paint = paintANSI
	}
	return t
}

func (t *terminal) line(s string) { t.out = append(t.out, s) }

// section writes a table under a heading, which is the table's own first row.
func (t *terminal) section(tab *table) {
	t.line("")
	t.out = append(t.out, tab.lines(0, t.width, t.paint)...)
}

func style(v result.Verdict) string {
	return map[result.Verdict]string{result.Fail: "fail", result.NoData: "nodata", result.Pass: "pass"}[v]
}

func (t *terminal) header(r result.Result) {
	w := runWord(r)
	rest := fmt.Sprintf("  %s  %s  %s", runName(r), chart.Seconds(runSeconds(r), 3), headline(r))
	rest = chart.Shorten(rest, t.width-chart.TextWidth(w))
	t.line(t.paint(style(r.Verdict), w) + t.paint("head", rest))
	t.line(t.paint("dim", chart.Shorten(setting(r), t.width)))
	for _, w := range warnings(r) {
		t.line(t.paint("nodata", chart.Shorten("warning: "+w, t.width)))
	}
	for _, note := range notes(r) {
		t.line(t.paint("dim", chart.Shorten("note: "+note, t.width)))
	}
}

// setting says what was run against what.
func setting(r result.Result) string {
	parts := []string{planeText(r.Run)}
	if v := r.Run.Versions; v.Kubernetes != "" {
		parts = append(parts, "Kubernetes "+chart.Clean(v.Kubernetes))
		if v.Etcd != "" {
			parts = append(parts, "etcd "+chart.Clean(v.Etcd))
		}
	}
	if n := r.Measurements.Nodes; n != nil && n.Count > 0 {
		parts = append(parts, fmt.Sprintf("%s nodes (%s)", chart.Count(n.Count), chart.Clean(n.Fidelity)))
	}
	if r.Run.ID != "" {
		parts = append(parts, fmt.Sprintf("seed %d", r.Run.Seed))
	}
	return strings.Join(append(parts, fmt.Sprintf("exit %d", r.ExitCode)), " · ")
}

// planeText names what the run was aimed at.
func planeText(run result.Run) string {
	switch {
	case run.ID == "":
		return "control plane not recorded"
	case run.Cluster.Bundled:
		return "bundled control plane"
	}
	return "cluster " + chart.Clean(run.Cluster.Name)
}

// environmentFailed begins the reason of a run that ended for its environment.
const environmentFailed = "the environment failed"

func (t *terminal) reasons(r result.Result) {
	reasons := otherReasons(r)
	const most = 5
	for i, reason := range reasons {
		if i == most {
			t.line(fmt.Sprintf("  and %d more reasons, in the report", len(reasons)-most))
			break
		}
		lines, longest := chart.Wrap(reason, t.width-4), 2
		if strings.HasPrefix(reason, environmentFailed) { // it may quote a component's log
			longest = 8
		}
		for j, l := range lines[:min(len(lines), longest)] {
			t.line(map[bool]string{true: "  ! ", false: "    "}[j == 0] + l)
		}
	}
}

func (t *terminal) gates(r result.Result) {
	bad := &table{align: "lfrlll"}
	var good []result.Gate
	var details []string // of each row of bad; empty: nothing to add
	said := ""
	for _, g := range byUrgency(r.Gates) {
		if g.Verdict == result.Pass {
			good = append(good, g)
			continue
		}
		row := plain("", chart.Clean(g.Name), gateValue(g), gateBound(g), margin(g), overText(g, len(r.Measurements.Phases)))
		row[0], row[4].style = cell{word(g.Verdict), style(g.Verdict)}, style(g.Verdict)
		bad.add(row...)
		detail := chart.Clean(strings.TrimPrefix(g.Detail, g.Name+": "))
		// What a value says of itself, an alert says in words: when, of what, for how long.
		if told := g.Verdict != result.NoData && g.Objective != "alert"; told || detail == said {
			detail = ""
		} else {
			said = detail
		}
		details = append(details, detail)
	}
	if len(bad.rows) > 0 {
		t.line("")
		for i, l := range bad.lines(0, t.width, t.paint) {
			t.line(l)
			t.detail(details[i])
		}
	}
	t.passing(good)
}

// detail writes what there is to say of a gate below it: on one line if a report has
// the rest.
func (t *terminal) detail(text string) {
	const indent = 9
	lines := chart.Wrap(text, t.width-indent)
	if t.reported && len(lines) > 1 {
		lines = []string{chart.Shorten(text, t.width-indent)}
	}
	for _, l := range lines {
		t.line(t.paint("dim", strings.Repeat(" ", indent)+l))
	}
}

// overText names, in little room, the phases that broke a gate's bound, or those
// that it is over where no single one did; the run had so many.
func overText(g result.Gate, phases int) string {
	if n := len(g.BrokenIn); n > 3 {
		return fmt.Sprintf("in %d of %d phases", n, len(g.Over))
	} else if n > 0 {
		return "in " + chart.Shorten(chart.Clean(strings.Join(g.BrokenIn, ", ")), 30)
	}
	switch n := len(g.Over); {
	case n > 1 && n >= phases:
		return "over all phases"
	case n > 3:
		return fmt.Sprintf("over %d phases", n)
	}
	return "over " + chart.Shorten(chart.Clean(strings.Join(g.Over, ", ")), 30)
}

// passing writes what passed, two gates to a line where there is room.
func (t *terminal) passing(good []result.Gate) {
	if len(good) == 0 {
		return
	}
	columns := [][]string{passed(good, t.width)}
	left := 0
	if half := (len(good) + 1) / 2; len(good) > 3 {
		two := [][]string{passed(good[:half], math.MaxInt), passed(good[half:], math.MaxInt)}
		left = widest(two[0])
		if left+4+widest(two[1]) <= t.width {
			columns = two
		}
	}
	t.line("")
	for i, l := range columns[0] {
		if len(columns) == 2 && i < len(columns[1]) {
			l += strings.Repeat(" ", left-chart.TextWidth(l)+4) + columns[1][i]
		}
		t.line(strings.ReplaceAll(l, word(result.Pass)+"  ", t.paint("pass", word(result.Pass))+"  "))
	}
}

// passed is a line for each gate, in so many columns.
func passed(good []result.Gate, width int) []string {
	tab := &table{align: "lfrl"}
	for _, g := range good {
		row := plain("", chart.Clean(g.Name), gateValue(g), gateBound(g))
		row[0] = cell{word(g.Verdict), style(g.Verdict)}
		tab.add(row...)
	}
	return tab.lines(0, width, noPaint)
}

func widest(lines []string) (width int) {
	for _, l := range lines {
		width = max(width, chart.TextWidth(l))
	}
	return width
}

// keyMetrics writes the four, always all of them. The verbs of the API server
// share lines: what matters is each verb's p99.
func (t *terminal) keyMetrics(r result.Result) {
	t.line("")
	t.line(t.paint("head", "KEY METRICS") + t.paint("dim", "  p99 over the whole run; ! is over upstream's objective"))
	hours := runSeconds(r) / 3600
	const indent = 49 // the longest name, between gaps
	for _, k := range r.Key {
		name := chart.Clean(k.Name)
		if len(k.Rows) == 0 {
			missing := chart.Shorten("NO DATA  "+chart.Clean(k.Missing), t.width-indent)
			t.line(fmt.Sprintf("  %-*s%s", indent-2, name, missing))
			continue
		}
		for i, line := range keyLines(k, hours, t.width-indent) {
			if i > 0 {
				name = ""
			}
			t.line(fmt.Sprintf("  %-*s%s", indent-2, name, line))
		}
	}
}

// keyLines puts as many rows of a metric on a line as the width takes.
func keyLines(k result.KeyMetric, hours float64, width int) []string {
	labels, values := 0, 0
	for _, row := range k.Rows {
		labels = max(labels, chart.TextWidth(chart.Clean(row.Label)))
		values = max(values, chart.TextWidth(keyText(row)))
	}
	labels = min(labels, width/2)
	one := labels + 1 + values + 1
	perLine := max((width+2)/(one+2), 1)
	var lines []string
	for i, row := range k.Rows {
		mark := " "
		if g, ok := guideOf(k.Name, row, hours); ok && keyValue(row) != nil && *keyValue(row) > g.bound {
			mark = "!"
		}
		c := fmt.Sprintf("%-*s %*s%s", labels, chart.Shorten(chart.Clean(row.Label), labels), values, keyText(row), mark)
		if i%perLine == 0 {
			lines = append(lines, c)
		} else {
			lines[len(lines)-1] += "  " + c
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func keyText(row result.KeyRow) string {
	switch v := keyValue(row); {
	case v == nil:
		return chart.None
	case row.P99 == nil:
		return chart.Format(scenario.Count, *v)
	default:
		return chart.Format(scenario.Seconds, *v)
	}
}
