package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// WriteCapacity writes capacity.html to dir.
func WriteCapacity(dir string, c result.Capacity) error {
	return publish(dir, result.CapacityHTMLFile, func(w io.Writer) error { return CapacityHTML(w, c) })
}

// Capacity writes the result of a capacity search for a terminal.
func Capacity(w io.Writer, c result.Capacity, o TerminalOptions) error {
	t := newTerminal(o)
	t.title(style(capacityVerdict(c)), strings.ToUpper(c.Answer), terminal.Clean(c.Scenario)+"  "+capacityHead(c))
	for _, line := range capacityFacts(c) {
		t.line(terminal.Shorten(line, t.width))
	}
	tab := newTable(">TRIAL", ">LOAD", "RESULT", ">OFFERED", ">ACHIEVED", ">P50", ">P99", "~CPU CORES IN USE; reason for the result")
	for _, x := range c.Trials {
		row := rowOf(c, x)
		tab.add(chart.Count(x.Number), row.LoadText, x.Outcome, row.Offered, row.Achieved, row.P50, row.P99, coresText(x))
		if x.Outcome == "bad" {
			tab.style("fail", 2)
		}
	}
	t.section(tab)
	for _, note := range c.Notes { // in full: users copy commands from them
		t.wrapped("", note)
	}
	t.reportAt(o.Dir, result.CapacityHTMLFile)
	return t.writeTo(w)
}

func capacityVerdict(c result.Capacity) result.Verdict {
	if c.ExitCode == 0 {
		return result.Pass
	}
	return result.NoData
}

// capacityHead returns the head line, such as "1,240/s of background.writes.rate (1,180/s to 1,310/s, 90%), 17 trials".
func capacityHead(c result.Capacity) string {
	trials := fmt.Sprintf("%d trials", len(c.Trials))
	if c.Median == nil {
		return fmt.Sprintf("%s from %s to %s, %s", terminal.Clean(c.Field), loadText(c, c.From), loadText(c, c.To), trials)
	}
	return fmt.Sprintf("%s of %s (90%% interval: %s to %s), %s", loadText(c, *c.Median), terminal.Clean(c.Field), loadText(c, *c.Low), loadText(c, *c.High), trials)
}

// capacityFacts returns lines about the highest load at which all gates passed, the gates that failed, the bottleneck,
// and the busiest components.
func capacityFacts(c result.Capacity) (lines []string) {
	if k := c.Confirmed; k != nil {
		lines = append(lines, fmt.Sprintf("confirmation: at %s all gates passed in %d of %d trials", loadText(c, k.Load), k.Good, k.Trials))
	}
	if c.Held != nil {
		lines = append(lines, "highest load at which all gates passed: "+loadText(c, *c.Held))
	}
	if len(c.GaveWay) > 0 {
		var names []string
		for _, g := range c.GaveWay {
			names = append(names, fmt.Sprintf("%s (%s)", terminal.Clean(g.Gate), plural(int64(g.Trials), "trial")))
		}
		lines = append(lines, "why trials were bad: "+strings.Join(names, ", "))
	}
	if b := c.Bottleneck; b != nil {
		also := ""
		if b.FullWhenLight {
			also = ", but also in the good trial at the lowest load"
		}
		lines = append(lines, fmt.Sprintf("likely bottleneck: %s (%s in use in %d bad trials%s)", useName(b.Use), chart.Format(scenario.Ratio, b.Share), b.Trials, also))
	} else if len(c.GaveWay) > 0 {
		lines = append(lines, "bottleneck unknown: no resource was used to 80% or more in the bad trials")
	}
	if i := busiest(c); i >= 0 {
		lines = append(lines, "components with the highest CPU use at "+loadText(c, c.Trials[i].Load)+", in cores: "+coresOf(c.Trials[i]))
	}
	return lines
}

// useName returns the name of a resource and its component, such as "time in fsync of etcd's log, etcd-0".
func useName(u result.Use) string {
	if u.Component == "" {
		return terminal.Clean(u.What)
	}
	return terminal.Clean(u.What + ", " + u.Component)
}

// busiest returns the index of the failed trial with the lowest load, or -1 if none failed. This trial shows the
// bottleneck.
func busiest(c result.Capacity) int {
	at := -1
	for i, t := range c.Trials {
		if t.Outcome == "bad" && (at < 0 || t.Load < c.Trials[at].Load) {
			at = i
		}
	}
	return at
}

func loadText(c result.Capacity, v float64) string {
	if c.Unit == string(scenario.PerSec) {
		return chart.Format(scenario.PerSec, v)
	}
	return chart.Group(fmt.Sprintf("%.0f", math.Floor(v+1e-6))) // round down, because only the lower whole number is known to hold
}

// coresOf lists the three components that used the most processor time.
func coresOf(t result.Trial) string {
	names := slices.SortedFunc(maps.Keys(t.Cores), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Cores[b], t.Cores[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names[:min(3, len(names))] {
		parts = append(parts, fmt.Sprintf("%s %.2f", terminal.Clean(name), t.Cores[name]))
	}
	return strings.Join(parts, ", ")
}

func coresText(t result.Trial) string {
	if t.Why == "" {
		return coresOf(t)
	}
	return coresOf(t) + "; " + terminal.Clean(t.Why)
}

// share formats v, from 0 to 1, as a percentage with one decimal place, so that 99.6% is not rounded to 100%.
func share(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }

// CapacityComparison writes the results of two capacity searches side by side for a terminal.
func CapacityComparison(w io.Writer, c result.CapacityComparison, o TerminalOptions) error {
	t := newTerminal(o)
	head := fmt.Sprintf("%s  %s", terminal.Clean(c.Sides[0].Scenario), terminal.Clean(c.Sides[0].Field))
	if c.Why != "" {
		head += ": " + terminal.Clean(c.Why)
	} else {
		head += fmt.Sprintf(": B sustains %s of A's load (90%% interval: %s to %s)", share(c.Median), share(c.Low), share(c.High))
	}
	verdict := result.NoData
	switch c.ExitCode {
	case 0:
		verdict = result.Pass
	case 1:
		verdict = result.Fail
	}
	t.title(style(verdict), strings.ToUpper(c.Answer), head)
	for i, s := range c.Sides {
		switch {
		case c.Why != "":
		case s.MayBeLower():
			t.wrapped("", fmt.Sprintf("the answer for %c is %q, so the capacity of %c may be even lower", 'A'+i, s.Answer, 'A'+i))
		case s.MayBeHigher():
			t.wrapped("", fmt.Sprintf("the answer for %c is %q, so the capacity of %c may be even higher", 'A'+i, s.Answer, 'A'+i))
		}
	}
	if c.Why == "" && !c.InTurns {
		t.wrapped("", "the two searches ran one after the other, so a change of the machine between the searches looks like a difference (`loadgen capacity --b` alternates between trials of A and B)")
	}
	for i, s := range c.Sides {
		t.line("")
		t.line(terminal.Shorten(fmt.Sprintf("%c  %s", 'A'+i, terminal.Clean(s.Dir)), t.width))
		t.line(terminal.Shorten("   "+s.Answer+": "+capacityHead(s.Capacity), t.width))
		for _, line := range capacityFacts(s.Capacity) {
			t.line(terminal.Shorten("   "+line, t.width))
		}
		for _, note := range s.Notes {
			t.wrapped("   ", note)
		}
	}
	if len(c.Differences) > 0 {
		tab := newTable("DIFFERS", "A", "B")
		for _, d := range c.Differences {
			tab.add(d.Name, terminal.Clean(d.A), terminal.Clean(d.B))
		}
		t.section(tab)
	}
	return t.writeTo(w)
}

// CapacityHTML writes capacity.html: charts of rates, latencies and CPU use against the load, with a dot for each
// trial, and the confidence interval of the capacity. The page needs neither network nor scripts.
func CapacityHTML(w io.Writer, c result.Capacity) error {
	page := struct {
		result.Capacity
		Verdict result.Verdict
		Head    string
		Facts   []string
		Rows    []capacityRow
		Curves  []curve
	}{Capacity: c, Verdict: capacityVerdict(c), Head: capacityHead(c), Facts: capacityFacts(c), Curves: curves(c)}
	for _, t := range c.Trials {
		page.Rows = append(page.Rows, rowOf(c, t))
	}
	return writePage(w, "capacity.tmpl", page)
}

// curves returns the curves that have values above 0: rates and latencies of requests, and CPU use per component.
func curves(c result.Capacity) (all []curve) {
	add := func(name string, unit scenario.Unit, value func(result.Trial) float64) {
		if slices.ContainsFunc(c.Trials, func(t result.Trial) bool { return value(t) > 0 }) {
			all = append(all, newCurve(c, name, unit, value))
		}
	}
	add("Offered", scenario.PerSec, func(t result.Trial) float64 { return t.Offered })
	add("Achieved", scenario.PerSec, func(t result.Trial) float64 { return t.Achieved })
	add("p50", scenario.Seconds, func(t result.Trial) float64 { return t.P50 })
	add("p99", scenario.Seconds, func(t result.Trial) float64 { return t.P99 })
	components := map[string]float64{}
	for _, t := range c.Trials {
		maps.Copy(components, t.Cores)
	}
	for _, name := range sortedKeys(components) {
		add("CPU cores used by "+terminal.Clean(name), "", func(t result.Trial) float64 { return t.Cores[name] })
	}
	return all
}

type capacityRow struct {
	result.Trial
	LoadText, Offered, Achieved, P50, P99, CoresText string
}

// rowOf returns the row of a trial in the table. For a trial without requests, rates and latencies are shown as
// missing.
func rowOf(c result.Capacity, t result.Trial) capacityRow {
	of := func(unit scenario.Unit, v float64) string {
		if t.Offered == 0 {
			return chart.None
		}
		return chart.Format(unit, v)
	}
	return capacityRow{
		Trial: t, LoadText: loadText(c, t.Load), Offered: of(scenario.PerSec, t.Offered), Achieved: of(scenario.PerSec, t.Achieved),
		P50: of(scenario.Seconds, t.P50), P99: of(scenario.Seconds, t.P99), CoresText: coresOf(t),
	}
}

// curve is a chart with one dot per trial: a value of the trial against its load. Positions are in percent. The load
// axis is logarithmic.
type curve struct {
	Name, Most  string
	Left, Right string // ends of the axis
	Dots        []curveDot
	HasInterval bool
	From, Width float64 // the interval of the capacity
}

type curveDot struct {
	X, Y    float64
	Outcome string
	Text    string
}

func newCurve(c result.Capacity, name string, unit scenario.Unit, value func(result.Trial) float64) curve {
	v := curve{Name: name}
	least, largest, most := math.Inf(1), 0.0, 0.0
	for _, t := range c.Trials {
		least, largest, most = min(least, t.Load), max(largest, t.Load), max(most, value(t))
	}
	if largest == 0 {
		return v
	}
	least, largest = least/1.1, largest*1.1
	x := func(load float64) float64 {
		return 100 * max(0, min(1, math.Log(load/least)/math.Log(largest/least)))
	}
	v.Left, v.Right, v.Most = loadText(c, least), loadText(c, largest), chart.Format(unit, most)
	for _, t := range c.Trials {
		y := 50.0
		if most > 0 {
			y = 50 - 46*value(t)/most
		}
		v.Dots = append(v.Dots, curveDot{X: x(t.Load), Y: y, Outcome: t.Outcome, Text: fmt.Sprintf("%s: %s, %s", loadText(c, t.Load), chart.Format(unit, value(t)), t.Outcome)})
	}
	if c.Low != nil && c.High != nil {
		v.HasInterval, v.From = true, x(*c.Low)
		v.Width = max(0.3, x(*c.High)-v.From)
	}
	return v
}
