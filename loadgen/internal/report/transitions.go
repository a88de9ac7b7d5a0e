package report

import (
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// transitionTable returns a table with a row for each transition in each phase.
func transitionTable(phases []result.Phase) table {
	t := table{
		Caption: "Transitions",
		Head:    heads("Phase", "Transition", "Resource", "From", "To", ">Objects", ">Open", ">Deleted before", ">p50", ">p90", ">p95", ">p99", ">p99.9", ">Max", ">External p99"),
		Note: "The time of an object from the state From until the state To, as seen by a watch. Objects: number of objects that reached From in this phase. Open: objects that had not reached To when the run ended. " +
			"An open object counts as slower than all others, so a percentile may be unknown (\"open\"). Deleted before: objects that were deleted before they reached To. External: the time without stalls of the generator.",
	}
	for _, p := range phases {
		for _, x := range p.Transitions {
			row := []string{terminal.Clean(p.Name), terminal.Clean(x.Name), terminal.Clean(x.Resource), terminal.Clean(x.From), terminal.Clean(x.To),
				chart.Count(x.Began), chart.Count(x.Open), chart.Count(x.Gone)}
			row = append(row, openQuantiles(x, x.Latency)...)
			t.add(append(row, openQuantiles(x, x.External)[3])...)
		}
	}
	return t
}

// openQuantiles formats the p50, p90, p95, p99, p99.9 and the maximum of a transition. If too many objects have not
// finished the transition, a quantile is unknown and is shown as "open".
func openQuantiles(x result.Transition, l result.Latency) []string {
	out := quantiles(l, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max)
	for i, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999, 1} {
		if l.Count > 0 && x.Open > 0 && (q == 1 || float64(x.Open) > (1-q)*float64(l.Count)) {
			out[i] = "open"
		}
	}
	return out
}

// maxTransitions is the maximum number of transitions in a summary. The report has all transitions.
const maxTransitions = 8

// fewTransitions returns a table of the first maxTransitions transitions, and how many more the report has.
func fewTransitions(phases []result.Phase, title string) (tab *table, more int) {
	tab = newTable("~"+title, ">objects", ">open", ">p50", ">p95", ">p99", ">max")
	for _, p := range phases {
		for _, x := range p.Transitions {
			q := openQuantiles(x, x.Latency)
			tab.add(terminal.Clean(p.Name)+", "+terminal.Clean(x.Name), chart.Count(x.Began), chart.Count(x.Open), q[0], q[2], q[3], q[5])
		}
	}
	more = max(0, len(tab.Rows)-maxTransitions)
	tab.Rows = tab.Rows[:len(tab.Rows)-more]
	return tab, more
}

// transitions writes a line for each transition in each phase.
func (t *terminalWriter) transitions(r result.Result) {
	if tab, more := fewTransitions(r.Measurements.Phases, "TRANSITIONS"); len(tab.Rows) > 0 {
		t.section(tab)
		t.more(more, "transition")
	}
}

func transitionSummary(b *strings.Builder, phases []result.Phase) {
	tab, more := fewTransitions(phases, "transition")
	if len(tab.Rows) == 0 {
		return
	}
	for _, row := range tab.Rows {
		row[0] = markdown.Cell(row[0])
	}
	tab.markdown(b)
	if more > 0 {
		fmt.Fprintf(b, "\n%s in the report\n", plural(int64(more), "more transition"))
	}
}
