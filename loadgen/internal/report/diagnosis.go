package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Diagnosis writes a diagnosis for a terminal.
func Diagnosis(w io.Writer, d result.Diagnosis, o TerminalOptions) error {
	t, v := newTerminal(o), newDiagnosisView(d)
	t.line(t.paint(diagnosisStyle(d), strings.ToUpper(d.Answer)) + t.paint("head", "  "+spanText(d.Under)))
	t.line(t.paint("dim", "compared with "+v.Compared))
	t.diagnosis(v)
	t.group("no data    ", v.Lacked...)
	return t.writeTo(w)
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
	t.diagnosis(newDiagnosisView(*r.Diagnosis))
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

func (t *terminalWriter) diagnosis(v diagnosisView) {
	for i, c := range v.Causes {
		t.line("")
		if c.Limit && (i == 0 || !v.Causes[i-1].Limit) {
			t.line("limits that were reached, but caused no symptom:")
		}
		t.cause(c)
	}
	t.group("symptom without a known cause: ", v.Unexplained...)
	t.group("caveat: ", v.Doubts...)
	t.group("machine    ", v.Machine...)
	t.group("ended without a fault: ", v.Exits...)
	for _, c := range v.Nearest {
		t.wrapped("nearest cause: ", c)
	}
}

func (t *terminalWriter) cause(c causeItem) {
	style := map[bool]string{false: "fail", true: "dim"}[c.Limit]
	t.line(t.paint(style, c.Kind) + "  " + terminal.Shorten(terminal.Clean(c.Title+", "+c.Times), t.width-terminal.TextWidth(c.Kind)-2))
	t.wrapped("  seen       ", c.Seen)
	if c.Explains != "" {
		t.wrapped("  effects    ", c.Explains)
	}
	t.wrapped("  look at    ", c.Look)
	if c.Trace != "" {
		t.wrapped("  trace      ", traceCommand(cmp.Or(t.dir, "DIR"), c.TraceID)+": "+c.Trace)
	}
	if c.Page != "" {
		t.wrapped("  similar    ", c.Page)
	}
}

// group writes an empty line, and then the texts, each with the label before it.
func (t *terminalWriter) group(label string, texts ...string) {
	if len(texts) > 0 {
		t.line("")
	}
	for _, text := range texts {
		t.wrapped(label, text)
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

// causeTimes formats the times of a cause: "14:00:00 to 14:05:00", or "since 14:00:00" if the cause has not ended.
func causeTimes(c result.Cause, under result.Span) string {
	began := c.Began.UTC().Format(layoutWithin(under))
	if c.Ended.IsZero() {
		return "since " + began
	}
	return fmt.Sprintf("%s to %s", began, c.Ended.UTC().Format(layoutWithin(result.Span{From: c.Began, To: c.Ended})))
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

// machineText describes the use of the generator's machine in the diagnosed time and in the comparison period: "1.97 of 2
// processors were in use (0.41 in the comparison period); other programs used 1.04 of 2 processors (0.02 in ...)".
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
	var all []string
	if m.Used != nil {
		all = append(all, fmt.Sprintf("%s of %g processors were in use%s", processors(m.Used.Under), m.Processors, calm(*m.Used, processors)))
	}
	all = append(all, fmt.Sprintf("other programs used %s of %g processors%s", processors(m.Others.Under), m.Processors, calm(m.Others, processors)))
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

// diagnosisView holds the strings that all reports show of a diagnosis.
type diagnosisView struct {
	Compared string
	Causes   []causeItem // the causes, and after them the limits
	// Unexplained lists the symptoms without a known cause. Nearest lists the causes that come closest to explaining
	// them.
	Unexplained, Nearest []string
	// Doubts lists reasons why the diagnosis may be incomplete. Exits describes exits of components that no fault
	// caused.
	Doubts, Exits   []string
	Said            string   // the answer in words, if there is no cause
	Machine, Lacked []string // load on the generator's machine; signals without data; at most one text each
}

// causeItem is one cause of the symptoms. If Limit is set, it is a limit that the growing load reached, not a cause.
type causeItem struct {
	Kind, Title, Times, Seen, Explains, Look, Trace, TraceID, Page string
	Limit                                                          bool
}

func newDiagnosisView(d result.Diagnosis) diagnosisView {
	v := diagnosisView{Compared: comparedText(d), Doubts: cleaned(d.Doubts), Exits: cleaned(d.Exits), Said: withoutCause(d)}
	if machine := machineText(d.Machine); machine != "" {
		v.Machine = []string{machine}
	}
	if len(d.Lacked) > 0 {
		v.Lacked = []string{strings.Join(d.Lacked, ", ")}
	}
	for i, c := range slices.Concat(d.Causes, d.Limits) {
		item := causeItem{
			Kind: c.Kind, Title: terminal.Clean(c.Title), Times: causeTimes(c, d.Under), Seen: terminal.Clean(c.Sentence), Explains: terminal.Clean(explainsText(c)),
			Look: terminal.Clean(c.Look), Page: c.Page, Limit: i >= len(d.Causes),
		}
		if x := c.Trace; x != nil {
			item.TraceID = shortID(x.ID)
			item.Trace = terminal.Clean(fmt.Sprintf("%s of %s (%s) in %s", seconds(x.Critical), x.Request, seconds(x.Seconds), x.Span))
		}
		v.Causes = append(v.Causes, item)
	}
	for _, e := range d.Symptoms {
		v.Unexplained = append(v.Unexplained, symptomText(e, d.Under))
	}
	for _, c := range d.Nearest {
		v.Nearest = append(v.Nearest, terminal.Clean(c.Title+", "+c.Sentence))
	}
	return v
}

func diagnosisSection(_ context.Context, p *page) (any, error) {
	if p.result.Diagnosis == nil {
		return nil, nil
	}
	v := newDiagnosisView(*p.result.Diagnosis)
	if v.Said = cmp.Or(v.Said, "no cause was found"); len(p.result.Diagnosis.Causes) > 0 {
		v.Said = ""
	}
	return v, nil
}

func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// diagnosisSummary writes a diagnosis as a Markdown list.
func diagnosisSummary(b *strings.Builder, d *result.Diagnosis) {
	if d == nil {
		return
	}
	v := newDiagnosisView(*d)
	b.WriteString("\nDiagnosis, from metrics only:\n\n")
	if v.Said != "" {
		fmt.Fprintf(b, "- %s\n", v.Said)
	}
	for _, c := range v.Causes {
		fmt.Fprintf(b, "- **%s**: %s\n", inMarkdown(c.Title), inMarkdown(c.Seen))
	}
	for _, group := range []struct {
		label string
		texts []string
	}{
		{"symptom without a known cause", v.Unexplained}, {"caveat", v.Doubts}, {"machine", v.Machine},
		{"ended without a fault", v.Exits}, {"nearest cause", v.Nearest}, {"signals without data", v.Lacked},
	} {
		for _, text := range group.texts {
			fmt.Fprintf(b, "- %s: %s\n", group.label, inMarkdown(text))
		}
	}
}
