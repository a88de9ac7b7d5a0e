package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Traces writes a line for each trace: its request, and the span that took most of the time on its critical path.
func Traces(w io.Writer, all []result.Trace, o TerminalOptions) error {
	t := newTerminal(o)
	rows := newTable("TRACE", "load", "phase", "request", "answer", ">took", ">spans", "~slowest span", ">on critical path")
	for _, x := range all {
		top := slowestSpan(x)
		rows.add(shortID(x.ID), terminal.Clean(x.Load), terminal.Clean(x.Phase), terminal.Clean(x.Verb+" "+x.Resource), statusOf(x), seconds(x.Seconds), chart.Count(int64(len(x.Spans))), terminal.Clean(top.Process+" "+top.Name), seconds(top.Critical))
	}
	t.section(rows)
	return t.writeTo(w)
}

// shortID returns the beginning of a trace's ID, which `loadgen trace` accepts.
func shortID(id string) string { return terminal.Clean(id[:min(len(id), 12)]) }

// slowestSpan returns the span with the most time on the critical path of its trace.
func slowestSpan(x result.Trace) (top result.TraceSpan) {
	for _, s := range x.Spans {
		if s.Critical > top.Critical {
			top = s
		}
	}
	return top
}

const barWidth = 40 // columns of a bar that is as long as the trace

// TraceWaterfall writes a trace: a line for each span, with a bar that shows when it ran, and a line for each event.
func TraceWaterfall(w io.Writer, x result.Trace, o TerminalOptions) error {
	t := newTerminal(o)
	t.line(terminal.Clean(fmt.Sprintf("%s %s of load %s in phase %s took %s (%s)", x.Verb, x.Resource, x.Load, x.Phase, seconds(x.Seconds), statusOf(x))))
	t.line("trace " + terminal.Clean(x.ID))
	whole := max(x.Seconds, 1e-9)
	for _, s := range x.Spans {
		whole = max(whole, s.Start+s.Seconds)
	}
	rows := newTable(">START", ">took", ">critical", strings.Repeat(" ", barWidth), "~span")
	for _, s := range x.Spans {
		indent := strings.Repeat("  ", min(s.Depth, 12))
		from := min(int(s.Start/whole*barWidth), barWidth-1)
		to := min(max(int((s.Start+s.Seconds)/whole*barWidth), from+1), barWidth)
		critical := ""
		if s.Critical > 0 {
			critical = seconds(s.Critical)
		}
		rows.add(seconds(s.Start), seconds(s.Seconds), critical, strings.Repeat(" ", from)+strings.Repeat("█", to-from), indent+terminal.Clean(s.Process+" "+s.Name))
		for _, e := range s.Events {
			rows.add(seconds(e.At), "", "", "", indent+"  · "+terminal.Clean(e.Name))
		}
	}
	t.section(rows)
	return t.writeTo(w)
}
