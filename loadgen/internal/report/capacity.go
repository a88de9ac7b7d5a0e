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
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
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
	tab.addTrials(c)
	for i, x := range c.Trials {
		if x.Why != "" {
			tab.Rows[i][7] += "; " + terminal.Clean(x.Why)
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
		t.section(differences("DIFFERS", c.Differences))
	}
	return t.writeTo(w)
}

// CapacityHTML writes capacity.html: charts of rates, latencies and CPU use against the load, with a dot for each
// trial, and the confidence interval of the capacity. The page needs neither network nor scripts.
func CapacityHTML(w io.Writer, c result.Capacity) error {
	t := newTable("Trial", ">Load", "Result", ">Offered", ">Achieved", ">p50", ">p99", "CPU cores in use")
	t.Caption = "Trials"
	t.addTrials(c)
	trials := t.section("trials")
	for i, x := range c.Trials {
		cells := trials.Table.Rows[i].Cells
		cells[0].To, cells[2].Small = reportIn(x.Dir), given(x.Why)
	}
	return document.Write(w, document.Document{
		Title: terminal.Clean(c.Scenario) + ": capacity", Heading: terminal.Clean(c.Scenario), Line: capacityHead(c),
		Style: style(capacityVerdict(c)), Word: c.Answer, Lead: append(capacityFacts(c), cleaned(c.Notes)...),
		Sections: []document.Section{{
			ID: "curve", Title: "Measurements by load", Figures: curves(c),
			Hint: "Each dot is a trial: a large red dot if a gate failed or a phase exceeded its time limit (bad trial), a pale dot if the trial could not be judged, otherwise all gates passed. The shaded band is the 90% confidence interval of the capacity. The horizontal axis is the load, on a log scale.",
		}, trials},
	})
}

// addTrials adds a row for each trial. A trial without requests has neither rates nor latencies.
func (t *table) addTrials(c result.Capacity) {
	for _, x := range c.Trials {
		row := []string{chart.Count(x.Number), loadText(c, x.Load), x.Outcome, chart.None, chart.None, chart.None, chart.None, coresOf(x)}
		if x.Offered != 0 {
			row[3], row[4] = chart.Format(scenario.PerSec, x.Offered), chart.Format(scenario.PerSec, x.Achieved)
			row[5], row[6] = seconds(x.P50), seconds(x.P99)
		}
		t.add(row...)
		if x.Outcome == "bad" {
			t.style("fail", 2)
		}
	}
}

// curves returns the curves that have values above 0: rates and latencies of requests, and CPU use per component.
func curves(c result.Capacity) (all []document.Figure) {
	add := func(name string, unit scenario.Unit, value func(result.Trial) float64) {
		if slices.ContainsFunc(c.Trials, func(t result.Trial) bool { return value(t) > 0 }) {
			all = append(all, curve(c, name, unit, value))
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

// curve returns a chart with a dot for each trial: a value of the trial against its load, on a logarithmic axis.
func curve(c result.Capacity, name string, unit scenario.Unit, value func(result.Trial) float64) document.Figure {
	const width, height = 100.0, 50.0
	least, largest, most := math.Inf(1), 0.0, 0.0
	for _, t := range c.Trials {
		least, largest, most = min(least, t.Load), max(largest, t.Load), max(most, value(t))
	}
	least, largest = least/1.1, largest*1.1
	x := func(load float64) float64 {
		return width * max(0, min(1, math.Log(load/least)/math.Log(largest/least)))
	}
	f := document.Figure{Caption: fmt.Sprintf("%s (axis from 0 to %s)", name, chart.Format(unit, most)), Left: loadText(c, least), Right: loadText(c, largest)}
	f.Drawing = document.Drawing{Width: width, Height: height, Label: fmt.Sprintf("%s of %d trials, by load from %s to %s", name, len(c.Trials), f.Left, f.Right)}
	if c.Low != nil && c.High != nil {
		f.Drawing.Shapes = append(f.Drawing.Shapes, document.Shape{X: x(*c.Low), W: max(0.3, x(*c.High)-x(*c.Low)), H: height})
	}
	for _, t := range c.Trials {
		f.Drawing.Shapes = append(f.Drawing.Shapes, document.Shape{
			Class: map[string]string{"bad": "bad", "invalid": "pale", "no data": "pale"}[t.Outcome],
			Dot:   true, X: x(t.Load), Y: height - (height-4)*value(t)/most,
			Title: fmt.Sprintf("%s: %s, %s", loadText(c, t.Load), chart.Format(unit, value(t)), t.Outcome),
		})
	}
	return f
}
