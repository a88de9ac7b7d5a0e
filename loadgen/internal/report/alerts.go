package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// outcomes lists the outcomes of alerts, the most urgent first, with the style of each.
var outcomes = []struct{ outcome, style string }{
	{result.AlertFired, "fail"}, {result.AlertPending, "nodata"}, {result.AlertNoData, "dim"}, {result.AlertSilent, "pass"},
}

// alertRows returns the alerts, the most urgent first. Equally urgent alerts with the same detail are adjacent.
func alertRows(r result.Result) (rows []result.Alert) {
	details := map[string]int{}
	for i, a := range r.Alerts {
		if _, ok := details[a.Detail]; !ok {
			details[a.Detail] = i
		}
	}
	rank := func(a result.Alert) int {
		return slices.IndexFunc(outcomes, func(o struct{ outcome, style string }) bool { return o.outcome == a.Outcome })
	}
	rows = slices.Clone(r.Alerts)
	slices.SortStableFunc(rows, func(a, b result.Alert) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(details[a.Detail], details[b.Detail]))
	})
	return rows
}

// ofAlert reports whether the table of alerts shows the verdict of gate g, in the row of the alert with the same name.
func ofAlert(r result.Result, g result.Gate) bool {
	return slices.ContainsFunc(r.Alerts, func(a result.Alert) bool { return a.Verdict != "" && a.Name == g.Name })
}

// ownGates returns the gates that the table of alerts does not show.
func ownGates(r result.Result) []result.Gate {
	return slices.DeleteFunc(byUrgency(r.Gates), func(g result.Gate) bool { return ofAlert(r, g) })
}

// alertCounts returns a text such as "12 alerts: 1 fired, 11 silent".
func alertCounts(r result.Result) string {
	var parts []string
	for _, o := range outcomes {
		n := 0
		for _, a := range r.Alerts {
			n += bools.Int(a.Outcome == o.outcome)
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o.outcome))
		}
	}
	return fmt.Sprintf("%d alerts: %s", len(r.Alerts), strings.Join(parts, ", "))
}

// alertsView returns the table of alerts of `loadgen gate --html`.
func alertsView(_ context.Context, p *page) (any, error) {
	if len(p.result.Alerts) == 0 {
		return nil, nil
	}
	return struct {
		Caption string
		Rows    []result.Alert
	}{alertCounts(p.result), alertRows(p.result)}, nil
}

func (t *terminalWriter) alerts(r result.Result) {
	if len(r.Alerts) == 0 {
		return
	}
	rows, tab := alertRows(r), newTable("", "", "~")
	for _, a := range rows {
		row := []string{strings.ToUpper(a.Outcome), "", terminal.Clean(a.Name)}
		tab.add(row...)
		for _, o := range outcomes {
			if o.outcome == a.Outcome {
				tab.style(o.style, 0)
			}
		}
		for _, g := range r.Gates {
			if a.Verdict != "" && g.Name == a.Name && gateWord(g) != row[0] {
				row[1] = gateWord(g)
				tab.style(gateStyle(g), 1)
			}
		}
	}
	t.line("")
	t.line(t.paint("head", alertCounts(r)))
	said := ""
	for i, l := range tab.lines(t.width, t.paint) {
		t.line(l)
		if detail := rows[i].Detail; detail != said && rows[i].Outcome != result.AlertSilent {
			t.detail(terminal.Clean(detail), 3)
			said = detail
		}
	}
}

func alertSummary(b *strings.Builder, r result.Result) {
	if len(r.Alerts) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", alertCounts(r))
	tab := newTable("outcome", "alert", "detail")
	for _, a := range alertRows(r) {
		outcome := a.Outcome
		if a.Verdict != "" && string(a.Verdict) != outcome {
			outcome += ", " + emphasis(a.Verdict)
		}
		tab.add(outcome, inMarkdown(a.Name), inMarkdown(terminal.Shorten(terminal.Clean(a.Detail), summaryDetail)))
	}
	tab.markdown(b)
}
