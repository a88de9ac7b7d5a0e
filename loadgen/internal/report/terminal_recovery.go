package report

import (
	"fmt"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// mostFaults of a summary; the report has them all.
const mostFaults = 5

// recovery writes a line for each fault and load, and one for each signal.
func (t *terminal) recovery(r result.Result) {
	if rec := r.Recovery; rec != nil && len(rec.Faults) > 0 {
		tab := &table{align: "flrrrrr", gap: 2}
		tab.add(styled("head", "RECOVERY", "load", "errors for", "first success", "back inside", "relists", "failover")...)
		rows := 0
		for _, f := range rec.Faults {
			for _, row := range recoveryRows(f) {
				if rows++; rows <= mostFaults {
					tab.add(plain(row...)...)
				}
			}
		}
		tab.dropEmpty()
		t.section(tab)
		if rows > mostFaults {
			t.line(fmt.Sprintf("  and %d more, in the report", rows-mostFaults))
		}
	}
	if len(r.Signals) == 0 {
		return
	}
	tab := &table{align: "frrrl", gap: 2}
	tab.add(styled("head", "SIGNALS", "moved by", "steady", "under", "returned")...)
	for _, s := range r.Signals {
		if s.Moved == nil {
			tab.add(plain(chart.Clean(s.Name), "NO DATA", "", "", "")...)
			continue
		}
		tab.add(plain(chart.Clean(s.Name), noises(s), chart.Format(scenario.Unit(s.Unit), s.Steady.Mean), chart.Format(scenario.Unit(s.Unit), s.Extreme), returned(s))...)
	}
	t.section(tab)
	for _, s := range r.Signals {
		if s.Moved == nil {
			t.line(t.paint("dim", chart.Shorten("  "+chart.Clean(s.Name)+": "+chart.Clean(s.Detail), t.width)))
		}
	}
}

// recoveryRows are a fault's: one for each load, or one without any.
func recoveryRows(f result.FaultRecovery) [][]string {
	relists, failover := "", ""
	if f.Relists.Relists > 0 {
		relists = chart.Count(f.Relists.Relists)
	}
	for _, text := range []string{failoverText(f, f.LeaseFailover, false), failoverText(f, f.LeaderFailover, true)} {
		switch {
		case text == chart.None:
		case failover == "":
			failover = text
		default:
			failover += ", " + text
		}
	}
	if len(f.Loads) == 0 {
		return [][]string{{faultName(f), "", "", "", "", relists, failover}}
	}
	var rows [][]string
	for i, l := range f.Loads {
		row := []string{faultName(f), chart.Clean(l.Load), windowText(l), "", backText(l), relists, failover}
		if i > 0 {
			row[0], row[5], row[6] = "", "", ""
		}
		if l.FirstSuccess != nil {
			row[3] = chart.Format(scenario.Seconds, *l.FirstSuccess)
		}
		rows = append(rows, row)
	}
	return rows
}
