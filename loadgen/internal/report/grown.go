package report

import (
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// grownTable returns a table of the spans that grew from a to b. a and b are names of runs or variants. The table has no
// rows if all is empty.
func grownTable(all []result.SpanGrowth, a, b string) *table {
	t := newTable("~SPAN THAT GREW", "~request", ">"+a, ">"+b)
	t.Caption = "Spans that grew from " + a + " to " + b
	t.Note = "Mean time of each span on the critical path of a request, over all complete traces. The differences are not tested for significance."
	for _, g := range all {
		t.add(terminal.Clean(g.Process+" "+g.Name), terminal.Clean(g.Verb+" "+g.Resource), seconds(g.A), seconds(g.B))
	}
	return t
}

// grown writes the table of the spans that grew, unless it has no rows.
func (t *terminalWriter) grown(all []result.SpanGrowth, a, b string) {
	if rows := grownTable(all, a, b); len(rows.Rows) > 0 {
		t.section(rows)
	}
}
