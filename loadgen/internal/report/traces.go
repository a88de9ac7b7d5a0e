package report

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
)

// fall is a waterfall on the page: a trace, or the life of a pod, which consists of the writes that create and change
// it.
type fall struct {
	ID     string // HTML id, the target of links; may be empty
	Title  string
	Where  string // rest of the title, such as the sender and the phase
	Took   string
	Code   string // ID of the trace or name of the pod, for `loadgen trace`
	Life   bool   // whether it is the life of a pod; each row is then a write request
	Legend []actor
	Rows   []fallRow
}

// actor is a process or client. Colour is its index in the palette.
type actor struct {
	Name   string
	Colour int
}

// fallRow is a row of a waterfall: a span, or a write in the life of a pod.
type fallRow struct {
	actor
	Depth       int
	What        string
	Detail      string // what the span worked on: a webhook, a key in etcd or a URL
	Start, Took string
	Bar         bar
	Failed      bool
	Most        bool // whether the span has the most time on the critical path
	// Critical is the time on the critical path, and Path its parts. Only spans have them.
	Critical string
	Path     []bar
	Marks    []mark
	Trace    traceRef // trace of the request, if the row is a write
}

// bar is a stretch of time. From and Width are percentages of the waterfall.
type bar struct{ From, Width string }

// mark is an event. At is its time as text, and Left its position in percent of the waterfall.
type mark struct{ Name, At, Left string }

// traceRef is the short ID of a trace. Link is the id of its element on the page, or "" if the page does not show the
// trace.
type traceRef struct{ ID, Link string }

const (
	maxNames  = 40    // maximum number of rows of the table of span names on the page
	maxIndent = 12    // maximum indentation of a span, in levels
	minShare  = 0.002 // minimum width of a bar, as a share of the waterfall
)

// tracesView returns the waterfalls of the slowest requests and of the lives of pods, and the table of span names.
func tracesView(_ context.Context, p *page) (any, error) {
	t := p.result.Traces
	if t == nil {
		return nil, nil
	}
	var v struct {
		Note        string
		Falls, Pods []fall
		Names       table
	}
	v.Note = tracesNote(t)
	processes := palette{}
	processes.of(spans.Client) // always has the first colour
	for _, x := range t.Slowest {
		v.Falls = append(v.Falls, newFall(x, processes))
	}
	clients := palette{}
	for _, life := range t.Pods {
		v.Pods = append(v.Pods, newLife(life, clients, t.Slowest))
	}
	v.Names = spanNames(t)
	return v, nil
}

// palette assigns colours to names in the order in which they appear.
type palette map[string]int

func (p palette) of(name string) actor {
	i, known := p[name]
	if !known {
		i = len(p)
		p[name] = i
	}
	return actor{terminal.Clean(name), i % chart.MaxSeries}
}

// tracesNote says how many requests were traced, and what is missing.
func tracesNote(t *result.Traces) string {
	note := fmt.Sprintf("%s of %s traced requests were kept (sampling rate %s).", chart.Count(int64(t.Kept)), chart.Count(t.Requests), percent(t.Sampled))
	if t.Incomplete > 0 {
		note += fmt.Sprintf(" %s have incomplete traces.", chart.Count(t.Incomplete))
	}
	for _, reason := range sortedKeys(t.Dropped) {
		note += fmt.Sprintf(" Dropped: %s %s.", chart.Count(t.Dropped[reason]), terminal.Clean(reason))
	}
	return note
}

func newFall(x result.Trace, processes palette) fall {
	f := fall{ID: traceAnchor(x), Title: requestOf(x), Where: whereOf(x), Took: seconds(x.Seconds), Code: terminal.Clean(x.ID)}
	top := slowestSpan(x)
	if top.Critical > 0 {
		f.Where += ". Most time: " + spanOf(top) + ", " + seconds(top.Critical)
	}
	whole := lengthOf(x)
	for _, s := range x.Spans {
		row := fallRow{
			actor: processes.of(s.Process), Depth: min(s.Depth, maxIndent), What: terminal.Clean(s.Name), Detail: terminal.Clean(s.Detail), Start: seconds(s.Start), Took: seconds(s.Seconds),
			Failed: s.Failed, Bar: newBar(s.Start, s.Seconds, whole),
		}
		if s.Critical > 0 {
			row.Critical, row.Most = seconds(s.Critical), s.Critical == top.Critical
		}
		for _, p := range s.Path {
			row.Path = append(row.Path, bar{chart.PercentAt(p.From / whole), chart.PercentAt((p.To - p.From) / whole)})
		}
		for _, e := range s.Events {
			row.Marks = append(row.Marks, mark{terminal.Clean(e.Name), seconds(e.At), newBar(e.At, 0, whole).From})
		}
		f.add(row)
	}
	return f
}

func newLife(life result.PodLife, clients palette, shown []result.Trace) fall {
	f := fall{Title: terminal.Clean(life.Pod), Where: plural(int64(len(life.Writes)), "write"), Took: seconds(life.Seconds), Code: terminal.Clean(life.Pod), Life: true}
	for _, w := range life.Writes {
		row := fallRow{
			actor: clients.of(w.Client), What: terminal.Clean(w.What), Start: seconds(w.Start), Took: seconds(w.Seconds), Bar: newBar(w.Start, w.Seconds, life.Seconds),
			Trace: traceRef{ID: shortID(w.Trace)},
		}
		row.Path = []bar{row.Bar}
		for _, x := range shown {
			if w.Trace != "" && x.ID == w.Trace {
				row.Trace.Link = traceAnchor(x)
			}
		}
		f.add(row)
	}
	return f
}

// add adds a row, and its actor to the legend.
func (f *fall) add(row fallRow) {
	f.Rows = append(f.Rows, row)
	for _, a := range f.Legend {
		if a == row.actor {
			return
		}
	}
	f.Legend = append(f.Legend, row.actor)
}

// newBar returns the bar in a waterfall for the time that begins at from and lasts for took. whole is the length of the
// waterfall. All are in seconds. The bar is wide enough to be visible.
func newBar(from, took, whole float64) bar {
	whole = max(whole, 1e-9)
	left := min(max(from/whole, 0), 1-minShare)
	return bar{chart.PercentAt(left), chart.PercentAt(min(max(took/whole, minShare), 1-left))}
}

func requestOf(x result.Trace) string { return terminal.Clean(x.Verb + " " + x.Resource) }

// whereOf returns the sender, the phase and the status of a trace's request.
func whereOf(x result.Trace) string {
	return terminal.Clean(fmt.Sprintf("%s, %s, %s", senderOf(x), phaseOf(x), statusOf(x)))
}

// senderOf returns the load or the other client that sent a request.
func senderOf(x result.Trace) string {
	if x.Client != "" {
		return "client " + x.Client
	}
	return "load " + x.Load
}

func phaseOf(x result.Trace) string {
	if x.Phase == "" {
		return "outside the phases"
	}
	return "phase " + x.Phase
}

func statusOf(x result.Trace) string {
	return cmp.Or(x.Failure, "status "+strconv.Itoa(x.Status))
}

func spanOf(s result.TraceSpan) string { return terminal.Clean(s.Process + " " + s.Name) }

// spanNames returns the table of span names: where the traced requests spent their time.
func spanNames(t *result.Traces) table {
	names := table{
		Caption: "Spans by request", Merged: 1,
		Head: heads("Request", "Span", "Process", ">Count", ">Self p50", ">Self p99", ">Share of critical path"),
		Note: "Self: the time of a span in which none of its children ran. Share of critical path: the part of the requests' time in which the response waited for the span itself.",
	}
	for _, n := range t.Names[:min(len(t.Names), maxNames)] {
		names.add(terminal.Clean(n.Verb+" "+n.Resource), terminal.Clean(n.Name), terminal.Clean(n.Process), chart.Count(n.Count), seconds(n.P50), seconds(n.P99), percent(n.Share))
	}
	if more := len(t.Names) - maxNames; more > 0 {
		names.Note += fmt.Sprintf(" %s are only in result.json; traces/index.json has all.", plural(int64(more), "row"))
	}
	return names
}

// maxTraced is the maximum number of slow requests in a summary. The report has all of result.Traces.Slowest.
const maxTraced = 5

// traced writes a line for each of the slowest traced requests, with the span that took most of its time.
func (t *terminalWriter) traced(r result.Result) {
	if r.Traces == nil || len(r.Traces.Slowest) == 0 {
		return
	}
	rows := newTable("~SLOW REQUESTS", "~", ">took", "~slowest span", ">critical", "trace")
	for _, x := range r.Traces.Slowest[:min(len(r.Traces.Slowest), maxTraced)] {
		top := slowestSpan(x)
		rows.add(terminal.Clean(x.Phase+" "+cmp.Or(x.Load, x.Client)), requestOf(x), seconds(x.Seconds), spanOf(top), seconds(top.Critical), shortID(x.ID))
	}
	t.section(rows)
	t.wrapped("  ", tracesNote(r.Traces))
	if t.reported {
		t.wrapped("  ", "To see one: "+traceCommand(t.dir, shortID(r.Traces.Slowest[0].ID)))
	}
}
