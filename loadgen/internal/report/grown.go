package report

import (
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// grownTable returns the table of the spans that take more of a request's time in b than in a. It has no rows if none
// does, or if the runs have no traces.
func grownTable(all []result.SpanGrowth, a, b string) *table {
	t := newTable("~SPAN THAT GREW", "~request", ">"+a, ">"+b)
	t.Caption = "Spans that grew"
	t.Note = "Mean time of each span on the critical path of a request, over all traced requests. The differences are not tested for significance."
	for _, g := range all {
		t.add(terminal.Clean(g.Process+" "+g.Name), terminal.Clean(g.Verb+" "+g.Resource), seconds(g.A), seconds(g.B))
	}
	return t
}

// grown writes the spans that grew, if there are any.
func (t *terminalWriter) grown(all []result.SpanGrowth, a, b string) {
	if rows := grownTable(all, a, b); len(rows.Rows) > 0 {
		t.section(rows)
	}
}
