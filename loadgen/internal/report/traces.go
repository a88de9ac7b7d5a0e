package report

import (
	"context"
	"fmt"
	"strconv"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// fall is a trace as a waterfall on the page.
type fall struct {
	Title, Where, Took, ID string
	Spans                  []fallSpan
}

// fallSpan is a row of a waterfall. Left and Width are the position of its bar in percent, and CriticalWidth is the share
// of the bar that lies on the critical path.
type fallSpan struct {
	Depth                 int
	Name, Process         string
	Start, Took, Critical string
	Left, Width           string
	Failed                bool
	Events                string
}

const mostNames = 40 // rows of the table of span names on the page

// tracesView returns the waterfalls of the slowest requests, and the table of span names.
func tracesView(_ context.Context, p *page) (any, error) {
	t := p.result.Traces
	if t == nil {
		return nil, nil
	}
	var v struct {
		Note  string
		Falls []fall
		Names table
	}
	v.Note = tracesNote(t)
	for _, x := range t.Slowest {
		v.Falls = append(v.Falls, newFall(x))
	}
	v.Names = spanNames(t)
	return v, nil
}

// tracesNote says how many requests were traced, and what is missing.
func tracesNote(t *result.Traces) string {
	note := fmt.Sprintf("%s of %s traced requests were kept (%s of all requests of the loads were traced).", chart.Count(int64(t.Kept)), chart.Count(t.Requests), percent(t.Sampled))
	if t.Incomplete > 0 {
		note += fmt.Sprintf(" %s kept traces lack spans.", chart.Count(int64(t.Incomplete)))
	}
	for _, reason := range sortedKeys(t.Dropped) {
		note += fmt.Sprintf(" Dropped: %s %s.", chart.Count(t.Dropped[reason]), reason)
	}
	return note
}

func newFall(x result.Trace) fall {
	f := fall{
		Title: terminal.Clean(x.Verb + " " + x.Resource), Where: terminal.Clean(fmt.Sprintf("load %s in phase %s, %s", x.Load, x.Phase, statusOf(x))),
		Took: seconds(x.Seconds), ID: terminal.Clean(x.ID),
	}
	whole := x.Seconds
	for _, s := range x.Spans {
		whole = max(whole, s.Start+s.Seconds)
	}
	for _, s := range x.Spans {
		row := fallSpan{
			Depth: min(s.Depth, 12), Name: terminal.Clean(s.Name), Process: terminal.Clean(s.Process), Start: seconds(s.Start), Took: seconds(s.Seconds), Failed: s.Failed,
			Left: percentText(s.Start / max(whole, 1e-9)), Width: percentText(max(s.Seconds/max(whole, 1e-9), 0.002)),
		}
		if s.Critical > 0 {
			row.Critical = seconds(s.Critical)
		}
		for i, e := range s.Events {
			if i > 0 {
				row.Events += "; "
			}
			row.Events += terminal.Clean(e.Name) + " " + seconds(e.At)
		}
		f.Spans = append(f.Spans, row)
	}
	return f
}

func statusOf(x result.Trace) string {
	if x.Failure != "" {
		return x.Failure
	}
	return "status " + strconv.Itoa(x.Status)
}

func percentText(share float64) string {
	return strconv.FormatFloat(100*min(max(share, 0), 1), 'f', 2, 64)
}

// spanNames returns the table of span names: where the kept traces spent their time.
func spanNames(t *result.Traces) table {
	names := table{
		Caption: "Spans of the kept traces", Merged: 1,
		Head: heads("Request", "Span", "Process", ">Count", ">Self p50", ">Self p99", ">Share of critical path"),
		Note: "Self: the part of a span in which none of its children ran. Share of critical path: the part of the requests' time that would have been saved if the span had taken no time. " +
			"The kept traces are the slowest, some random and some failed ones, so these are not percentiles of all requests.",
	}
	for _, n := range t.Names[:min(len(t.Names), mostNames)] {
		names.add(terminal.Clean(n.Verb+" "+n.Resource), terminal.Clean(n.Name), terminal.Clean(n.Process), chart.Count(int64(n.Count)), seconds(n.P50), seconds(n.P99), percent(n.Share))
	}
	return names
}

// mostTraced is the maximum number of slow requests in a summary. The report has all of result.Traces.
const mostTraced = 5

// traced writes a line for each of the slowest traced requests, with the span that took most of its time.
func (t *terminalWriter) traced(r result.Result) {
	if r.Traces == nil || len(r.Traces.Slowest) == 0 {
		return
	}
	rows := newTable("SLOW REQUESTS", "~", ">took", "~slowest span", ">on critical path")
	for _, x := range r.Traces.Slowest[:min(len(r.Traces.Slowest), mostTraced)] {
		top := slowestSpan(x)
		rows.add(terminal.Clean(x.Phase+" "+x.Load), terminal.Clean(x.Verb+" "+x.Resource), seconds(x.Seconds), terminal.Clean(top.Process+" "+top.Name), seconds(top.Critical))
	}
	t.section(rows)
	t.wrapped("  ", tracesNote(r.Traces))
}
