package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Diagnosis writes a diagnosis for a terminal.
func Diagnosis(w io.Writer, d result.Diagnosis, o TerminalOptions) error {
	t := newTerminal(o)
	t.line(t.paint(diagnosisStyle(d), strings.ToUpper(d.Answer)) + t.paint("head", "  "+spanText(d.Under)))
	t.line(t.paint("dim", "compared with "+comparedText(d)))
	t.diagnosis(d)
	if lacked := lackedText(&d); lacked != "" {
		t.line("")
		t.wrapped("no data    ", lacked)
	}
	_, err := io.WriteString(w, strings.Join(t.out, "\n")+"\n")
	return err
}

func diagnosisStyle(d result.Diagnosis) string {
	return map[string]string{result.Healthy: "pass", result.Diagnosed: "fail", result.Unknown: "nodata", result.CannotTell: "nodata"}[d.Answer]
}

// comparedText names what a diagnosis compares with: another run, or a time without problems (the comparison period).
func comparedText(d result.Diagnosis) string {
	if d.Reference != "" {
		return "the run in " + terminal.Clean(d.Reference)
	}
	if !d.Calm.To.After(d.Calm.From) {
		return "no comparison period"
	}
	return spanText(d.Calm) + " (comparison period)"
}

// spanText returns a text such as "2026-11-25 14:00:00 to 14:05:00 UTC".
func spanText(s result.Span) string {
	return s.From.UTC().Format(time.DateTime) + " to " + s.To.UTC().Format(layoutWithin(s)) + " UTC"
}

// layoutWithin returns the format of times within a span. The format includes the date, unless the span is within one
// day (UTC).
func layoutWithin(s result.Span) string {
	if s.From.UTC().Format(time.DateOnly) != s.To.UTC().Format(time.DateOnly) {
		return time.DateTime
	}
	return time.TimeOnly
}

// diagnosed writes the diagnosis of a run that did not pass.
func (t *terminalWriter) diagnosed(r result.Result) {
	if r.Diagnosis == nil {
		return
	}
	t.line("")
	t.line(t.paint("head", "DIAGNOSIS"))
	if said := withoutCause(*r.Diagnosis); said != "" {
		t.line(said)
	}
	t.diagnosis(*r.Diagnosis)
}

// withoutCause returns a sentence for a diagnosis that answers "healthy" or "cannot tell", and "" for other answers.
func withoutCause(d result.Diagnosis) string {
	switch d.Answer {
	case result.Healthy:
		return nothingMoved
	case result.CannotTell:
		return "no symptom was found, but too little was recorded to call the cluster healthy"
	}
	return ""
}

// nothingMoved is the text for a run that did not pass although its diagnosis is healthy.
const nothingMoved = "no symptom was found: none of the checked metrics changed"

func (t *terminalWriter) diagnosis(d result.Diagnosis) {
	for _, c := range d.Causes {
		t.line("")
		t.cause(c, d.Under, "fail")
	}
	for i, c := range d.Limits {
		t.line("")
		if i == 0 {
			t.line("limits that were reached, but caused no symptom:")
		}
		t.cause(c, d.Under, "dim")
	}
	if len(d.Symptoms) > 0 {
		t.line("")
		for _, e := range d.Symptoms {
			t.wrapped("symptom without a known cause: ", symptomText(e, d.Under))
		}
	}
	if len(d.Doubts) > 0 {
		t.line("")
		for _, doubt := range d.Doubts {
			t.wrapped("caveat: ", doubt)
		}
	}
	if machine := machineText(d.Machine); machine != "" {
		t.line("")
		t.wrapped("machine    ", machine)
	}
	if len(d.Exits) > 0 {
		t.line("")
	}
	for _, exit := range d.Exits {
		t.wrapped("ended without a fault: ", exit)
	}
	for _, c := range d.Nearest {
		t.wrapped("nearest cause: ", c.Title+", "+c.Sentence)
	}
}

func (t *terminalWriter) cause(c result.Cause, under result.Span, style string) {
	t.line(t.paint(style, c.Kind) + "  " + terminal.Shorten(terminal.Clean(c.Title+causeTimes(c, under)), t.width-terminal.TextWidth(c.Kind)-2))
	t.wrapped("  seen       ", c.Sentence)
	if len(c.Explains) > 0 {
		t.wrapped("  effects    ", explainsText(c))
	}
	t.wrapped("  look at    ", c.Look)
	if c.Page != "" {
		t.wrapped("  similar    ", c.Page)
	}
}

// wrapped writes a text after a label. If the text has several lines, all begin in the same column.
func (t *terminalWriter) wrapped(label, text string) {
	for i, line := range terminal.Wrap(terminal.Clean(text), t.width-terminal.TextWidth(label)) {
		if i > 0 {
			label = strings.Repeat(" ", terminal.TextWidth(label))
		}
		t.line(label + line)
	}
}

// causeTimes formats the times of a cause: ", 14:00:00 to 14:05:00", or ", since 14:00:00" if the cause has not ended.
func causeTimes(c result.Cause, under result.Span) string {
	began := c.Began.UTC().Format(layoutWithin(under))
	if c.Ended.IsZero() {
		return ", since " + began
	}
	return fmt.Sprintf(", %s to %s", began, c.Ended.UTC().Format(layoutWithin(result.Span{From: c.Began, To: c.Ended})))
}

func explainsText(c result.Cause) string {
	var all []string
	for _, e := range c.Explains {
		on := strings.Join(e.Components, ", ")
		if len(e.Components) > 3 {
			on = fmt.Sprintf("%d components", len(e.Components))
		}
		all = append(all, e.What+" ("+on+")")
	}
	return strings.Join(all, "; ")
}

// lackedText lists the signals without data.
func lackedText(d *result.Diagnosis) string { return strings.Join(d.Lacked, ", ") }

// symptomText describes a symptom: "loadgen: mean time of heartbeats (10 ms -> 2 s) from 14:00:00".
func symptomText(e result.Evidence, under result.Span) string {
	what := e.What
	if e.Component != "" {
		what = e.Component + ": " + what
	}
	if e.Unit != "event" && e.Unit != "" {
		if e.Calm != nil {
			what += fmt.Sprintf(" (%s -> %s)", chart.Format(scenario.Unit(e.Unit), *e.Calm), chart.Format(scenario.Unit(e.Unit), e.Under))
		} else {
			what += " (" + chart.Format(scenario.Unit(e.Unit), e.Under) + ")"
		}
	}
	return terminal.Clean(what + " from " + e.Began.UTC().Format(layoutWithin(under)))
}

// machineText describes how much other work ran on the generator's machine, also in the time without problems: "other
// programs used 1.04 of 2 processors (0.02 in the comparison period)".
func machineText(m *result.MachineUse) string {
	if m == nil {
		return ""
	}
	calm := func(c result.Compared, text func(float64) string) string {
		if c.Calm == nil {
			return ""
		}
		return " (" + text(*c.Calm) + " in the comparison period)"
	}
	processors := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	percent := func(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }
	all := []string{fmt.Sprintf("other programs used %s of %g processors%s", processors(m.Others.Under), m.Processors, calm(m.Others, processors))}
	if m.Steal.Under >= 0.01 {
		all = append(all, "the hypervisor gave "+processors(m.Steal.Under)+" processors to other machines"+calm(m.Steal, processors))
	}
	for _, w := range []struct {
		on   string
		wait *result.Compared
	}{{"memory", m.MemoryWait}, {"a disk", m.DiskWait}} {
		if w.wait != nil && w.wait.Under >= 0.01 {
			all = append(all, "for "+percent(w.wait.Under)+" of the time, a process waited for "+w.on+calm(*w.wait, percent))
		}
	}
	return strings.Join(all, "; ")
}

// diagnosisPage holds the data of the diagnosis section of the page.
type diagnosisPage struct {
	Compared string
	Causes   []causeItem
	// Unexplained lists the symptoms without a known cause. Nearest lists the causes that come closest to explaining
	// them.
	Unexplained, Nearest []string
	// Doubts lists reasons why the diagnosis may be incomplete. Exits lists components that ended although no fault
	// ended them.
	Doubts, Exits   []string
	Said            string // the answer, if there is no cause
	Machine, Lacked string
}

// causeItem is one cause of the symptoms. If Limit is set, it is a limit that the growing load reached, not a cause.
type causeItem struct {
	Title, Times, Seen, Explains, Look, Page string
	Limit                                    bool
}

func diagnosisView(_ context.Context, p *page) (any, error) {
	d := p.result.Diagnosis
	if d == nil {
		return nil, nil
	}
	view := diagnosisPage{Compared: comparedText(*d), Doubts: cleaned(d.Doubts), Exits: cleaned(d.Exits), Machine: machineText(d.Machine), Lacked: lackedText(d)}
	if len(d.Causes) == 0 {
		view.Said = capitalize(cmp.Or(withoutCause(*d), "no cause was found"))
	}
	for i, c := range slices.Concat(d.Causes, d.Limits) {
		view.Causes = append(view.Causes, causeItem{
			Title: terminal.Clean(capitalize(c.Title)), Times: strings.TrimPrefix(causeTimes(c, d.Under), ", "), Seen: terminal.Clean(c.Sentence), Explains: terminal.Clean(explainsText(c)),
			Look: terminal.Clean(c.Look), Page: c.Page, Limit: i >= len(d.Causes),
		})
	}
	for _, e := range d.Symptoms {
		view.Unexplained = append(view.Unexplained, symptomText(e, d.Under))
	}
	for _, c := range d.Nearest {
		view.Nearest = append(view.Nearest, terminal.Clean(c.Title+", "+c.Sentence))
	}
	return view, nil
}

func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// diagnosisSummary writes the causes, and the symptoms without a known cause, as a Markdown list.
func diagnosisSummary(b *strings.Builder, d *result.Diagnosis) {
	if d == nil {
		return
	}
	b.WriteString("\nDiagnosis, from metrics only:\n\n")
	if said := withoutCause(*d); said != "" {
		fmt.Fprintf(b, "- %s\n", said)
	}
	for _, c := range slices.Concat(d.Causes, d.Limits) {
		fmt.Fprintf(b, "- **%s**: %s\n", markdown.Cell(terminal.Clean(c.Title)), markdown.Cell(terminal.Clean(c.Sentence)))
	}
	for _, e := range d.Symptoms {
		fmt.Fprintf(b, "- symptom without a known cause: %s\n", markdown.Cell(symptomText(e, d.Under)))
	}
	for _, doubt := range d.Doubts {
		fmt.Fprintf(b, "- caveat: %s\n", markdown.Cell(terminal.Clean(doubt)))
	}
	if machine := machineText(d.Machine); machine != "" {
		fmt.Fprintf(b, "- machine: %s\n", machine)
	}
	for _, exit := range d.Exits {
		fmt.Fprintf(b, "- ended without a fault: %s\n", markdown.Cell(terminal.Clean(exit)))
	}
	for _, c := range d.Nearest {
		fmt.Fprintf(b, "- nearest cause: %s\n", markdown.Cell(terminal.Clean(c.Title+", "+c.Sentence)))
	}
	if lacked := lackedText(d); lacked != "" {
		fmt.Fprintf(b, "- signals without data: %s\n", lacked)
	}
}
