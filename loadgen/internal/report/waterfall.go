package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// TraceList holds the traces that a run kept.
type TraceList struct {
	Shown []result.Trace   // the traces to list, in order
	Kept  int              // number of traces that the run kept, shown or not
	Pods  []result.PodLife // lives of pods: the write requests for each pod
}

// Traces writes a line for each trace: its request, and the span with the most time on its critical path. Then it
// writes a line for the life of each pod.
func Traces(w io.Writer, all TraceList, o TerminalOptions) error {
	t := newTerminal(o)
	rows := newTable("TRACE", ">took", "~phase", "~sender", "~request", "~answer", "~slowest span", ">critical")
	for _, x := range all.Shown {
		top := slowestSpan(x)
		rows.add(shortID(x.ID), seconds(x.Seconds), terminal.Clean(x.Phase), terminal.Clean(cmp.Or(x.Load, x.Client)), requestOf(x), terminal.Clean(strings.TrimPrefix(statusOf(x), "status ")), spanOf(top), seconds(top.Critical))
		if x.Failure != "" || x.Status >= 400 {
			rows.style("fail", 5)
		}
	}
	t.line(fmt.Sprintf("%s of %s, the slowest first", chart.Count(int64(len(all.Shown))), plural(int64(all.Kept), "kept trace")))
	if len(all.Shown) > 0 {
		t.section(rows)
	}
	if len(all.Pods) > 0 {
		pods := newTable("~POD", ">took", ">writes", "~longest write", ">took")
		for _, life := range all.Pods {
			longest := result.PodWrite{}
			for _, write := range life.Writes {
				if write.Seconds >= longest.Seconds {
					longest = write
				}
			}
			pods.add(terminal.Clean(life.Pod), seconds(life.Seconds), chart.Count(int64(len(life.Writes))), strings.TrimSpace(writeText(longest)), seconds(longest.Seconds))
		}
		t.section(pods)
	}
	return t.writeTo(w)
}

func writeText(w result.PodWrite) string { return terminal.Clean(w.What + " " + w.Client) }

// TraceWaterfall writes a trace: a line for each span, with a bar that shows when it ran, and a line for each event.
func TraceWaterfall(w io.Writer, x result.Trace, o TerminalOptions) error {
	t := newTerminal(o)
	t.title("head", requestOf(x), "took "+seconds(x.Seconds))
	t.wrapped("", whereOf(x)+", trace "+terminal.Clean(x.ID))
	whole := lengthOf(x)
	rows := newTable(">START", ">took", ">critical", "", "~span")
	process := ""
	for _, s := range x.Spans {
		bar := newCells(t.barWidth(), whole)
		bar.fill(s.Start, s.Start+s.Seconds, '░')
		for _, p := range s.Path {
			bar.fillHalf(p.From, p.To, '█')
		}
		critical := ""
		if s.Critical > 0 {
			critical = seconds(s.Critical)
		}
		if s.Critical > s.Seconds/2 { // also if the bar is shorter than a character
			bar.fill(s.Start, s.Start, '█')
		}
		indent, name := strings.Repeat(" ", min(s.Depth, maxIndent)), terminal.Clean(s.Name)
		if s.Process != process {
			process, name = s.Process, spanOf(s)
		}
		if s.Detail != "" {
			name += " " + terminal.Clean(s.Detail)
		}
		rows.add(seconds(s.Start), seconds(s.Seconds), critical, bar.String(), indent+name)
		switch {
		case s.Failed:
			rows.style("fail", 4)
		case s.Critical == 0:
			rows.style("dim", 0, 1, 3, 4)
		}
		for _, e := range s.Events {
			moment := newCells(t.barWidth(), whole)
			moment.fill(e.At, e.At, '│')
			rows.add(seconds(e.At), "", "", moment.String(), indent+" · "+terminal.Clean(e.Name))
			rows.style("dim", 0, 3, 4)
		}
	}
	t.section(rows)
	t.line("")
	t.wrapped("", "A line is a span: an operation of one process, inside the less indented span above it. █ the response waited for it (critical path), ░ not on the critical path, │ an event.")
	return t.writeTo(w)
}

// PodLife writes the life of a pod: a line for each write request, with a bar that shows when the request ran.
func PodLife(w io.Writer, life result.PodLife, o TerminalOptions) error {
	t := newTerminal(o)
	t.title("head", "pod "+terminal.Clean(life.Pod), "took "+seconds(life.Seconds))
	rows := newTable(">START", ">took", "", "~write", "~client", "trace")
	for _, write := range life.Writes {
		bar := newCells(t.barWidth(), life.Seconds)
		bar.fill(write.Start, write.Start+write.Seconds, '█')
		rows.add(seconds(write.Start), seconds(write.Seconds), bar.String(), terminal.Clean(write.What), terminal.Clean(write.Client), shortID(write.Trace))
	}
	t.section(rows)
	t.line("")
	t.wrapped("", "A line is a write to the API that the pod depended on, with its client. 'loadgen trace DIR ID' shows the trace of one.")
	return t.writeTo(w)
}

// barWidth returns the number of characters for the bars of a waterfall. The rest of the line is for times and names.
func (t *terminalWriter) barWidth() int { return (t.width - 32) * 2 / 5 }
