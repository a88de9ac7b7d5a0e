package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// phaseSums holds sums over the loads of a phase. Quantiles cannot be summed, so slowest has the quantiles of the
// slowest watches.
type phaseSums struct {
	offered, achieved                           float64
	unsent                                      int64
	delivered, lost, duplicated, exp, reordered int64
	open, wanted                                int
	slowest                                     result.Watches // the watch load with the highest delivery p99
	sets                                        int            // number of watch loads with deliveries
}

func sums(p result.Phase) phaseSums {
	var s phaseSums
	for _, r := range rundir.Requests(p) {
		s.offered += r.OfferedRate
		s.achieved += r.AchievedRate
		s.unsent += r.Unsent
	}
	for _, w := range p.Watches {
		s.delivered += w.Delivered
		s.lost += w.Lost
		s.duplicated += w.Duplicated
		s.exp += w.Expected
		s.open += w.Open
		s.wanted += w.Wanted
		s.reordered += w.Reordered
		if w.Delivery.Count == 0 {
			continue
		}
		if s.sets++; s.sets == 1 || slower(w.Delivery, s.slowest.Delivery) < 0 {
			s.slowest = w
		}
	}
	return s
}

// slower sorts distributions by p99, then by p50, the highest first.
func slower(x, y result.Latency) int {
	return cmp.Or(cmp.Compare(y.P99, x.P99), cmp.Compare(y.P50, x.P50))
}

// threeQuantiles formats the p50, p95 and p99 of a distribution, or returns dashes if the distribution is empty. The
// p95 is a dash for old runs, which did not record it.
func threeQuantiles(l result.Latency) []string {
	out := quantiles(l, l.P50, l.P95, l.P99)
	if l.P95 == 0 && l.P99 > 0 {
		out[1] = chart.None
	}
	return out
}

// Indices of columns in the table of phases.
const (
	phaseOffered   = 2
	phaseUnsent    = 4
	phaseBacklog   = 5
	phaseQuantiles = 6
	phaseLoad      = 9
	phasePods      = 10
	phaseWatches   = 11
	phaseColumns   = 12
)

// phases writes a row for each phase. If a phase has several loads, its rates are sums. Its latencies are from the
// slowest load, which another column names. Columns that are empty in all phases are left out.
func (t *terminalWriter) phases(r result.Result) {
	phases := r.Measurements.Phases
	if len(phases) == 0 {
		return
	}
	tab := newTable("~PHASES", ">took", ">offered", ">achieved", ">unsent", ">backlog", ">p50", ">p95", ">p99", "slowest load", ">pods ready", ">watches")
	for _, p := range phases {
		tab.add(phaseSummary(p)...)
	}
	tab.dropEmpty()
	var below []string
	for _, column := range []struct {
		at    int
		title string
	}{{phaseLoad, "p50 to p99 are of the load with the highest p99"}, {phaseWatches, "watches open"}, {phasePods, "pods ready"}} {
		if tab.natural() > t.width+nameRoom {
			if cells := tab.takeColumn(column.at); cells != "" {
				below = append(below, column.title+": "+cells)
			}
		}
	}
	t.section(tab)
	for _, text := range below {
		t.wrapped("  ", text)
	}
	for _, p := range phases {
		for _, line := range deliveryLines(p) {
			t.line(terminal.Shorten(line, t.width))
		}
		for _, l := range afterFailure(p) {
			t.line(terminal.Shorten("  "+terminal.Clean(p.Name)+": "+l, t.width))
		}
	}
}

func phaseSummary(p result.Phase) []string {
	s, requests := sums(p), rundir.Requests(p)
	row := make([]string, phaseColumns)
	row[0], row[1] = terminal.Clean(p.Name)+phaseNote(p), seconds(p.Seconds())
	if len(requests) > 0 {
		copy(row[phaseOffered:], []string{chart.Format(scenario.PerSec, s.offered), chart.Format(scenario.PerSec, s.achieved)})
		for at, n := range map[int]int64{phaseUnsent: s.unsent, phaseBacklog: backlogOf(p)} {
			if n > 0 {
				row[at] = chart.Count(n)
			}
		}
		slowest := slices.MinFunc(requests, func(x, y result.Requests) int { return slower(x.Latency, y.Latency) })
		copy(row[phaseQuantiles:], threeQuantiles(slowest.Latency))
		if len(requests) > 1 {
			row[phaseLoad] = nameAmong(slowest, requests)
		}
	}
	if w := p.Workload; w != nil && w.PodsReady > 0 {
		row[phasePods] = chart.Count(w.PodsReady)
	}
	if len(p.Watches) > 0 {
		row[phaseWatches] = chart.Count(s.open)
		if s.open != s.wanted {
			row[phaseWatches] += "/" + chart.Count(s.wanted)
		}
	}
	return row
}

// nameRoom is the maximum number of characters that may be cut off from the names of phases. If the table is still too
// wide then, columns move to lines below the table.
const nameRoom = 3

// loadWidth is the maximum length of the name of a load in the rows of phases.
const loadWidth = 16

// nameAmong returns the name of a load. If the load makes several kinds of call, the name of the call follows.
func nameAmong(one result.Requests, all []result.Requests) string {
	calls := 0
	for _, r := range all {
		if r.Load == one.Load {
			calls++
		}
	}
	name := terminal.Clean(one.Load)
	if calls > 1 {
		name += " " + callText(one.Verb, one.Resource, one.Variant, one.Tenant)
	}
	return terminal.Shorten(name, loadWidth)
}

// deliveryLines describes the delivery of watch events in a phase, with the latencies of the slowest watch load.
func deliveryLines(p result.Phase) []string {
	s := sums(p)
	if s.exp == 0 {
		return nil
	}
	q, of := threeQuantiles(s.slowest.Delivery), ""
	if s.sets > 1 {
		of = " of " + terminal.Clean(s.slowest.Load)
	}
	return []string{
		fmt.Sprintf("  %s: %s of %s watch events delivered, %s lost, %s duplicated, %s reordered", terminal.Clean(p.Name),
			chart.Count(s.delivered), chart.Count(s.exp), chart.Count(s.lost), chart.Count(s.duplicated), chart.Count(s.reordered)),
		fmt.Sprintf("    delivery time%s: p50 %s, p95 %s, p99 %s", of, q[0], q[1], q[2]),
	}
}

// phaseNote returns a note on a phase that did not run or end as the scenario demands, or "".
func phaseNote(p result.Phase) string {
	switch {
	case p.Interrupted:
		return " (interrupted)"
	case p.EndedEarly:
		return " (ended early)"
	case p.PausedSeconds > 0:
		return " (load paused for " + seconds(p.PausedSeconds) + ")"
	case p.Until != "" && !p.ConditionMet:
		return " (" + terminal.Clean(p.Until) + " not met)"
	}
	return ""
}

func afterFailure(p result.Phase) []string {
	var out []string
	if w := p.Workload; w != nil && w.NotReadyAfter != nil {
		out = append(out, "all failed nodes were seen NotReady after "+seconds(*w.NotReadyAfter))
	}
	if w := p.Workload; w != nil && w.RecoveredAfter != nil {
		out = append(out, "all workloads were complete again after "+seconds(*w.RecoveredAfter))
	}
	return out
}
