package report

import (
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// runSeconds is how long the phases took, from the first's start to the
// last's end; the whole run where there are none.
func runSeconds(r result.Result) float64 {
	if p := r.Measurements.Phases; len(p) > 0 {
		return p[len(p)-1].End.Sub(p[0].Start).Seconds()
	}
	return max(r.Run.Ended.Sub(r.Run.Started).Seconds(), 0)
}

// phaseSums adds up what the loads of a phase did. Quantiles can't be added:
// the worst load's stands for all.
type phaseSums struct {
	offered, achieved                float64
	unsent                           int64
	latency                          quantileSet
	delivered, lost, duplicated, exp int64
	reordered                        int64
	delivery                         quantileSet
	open, wanted                     int
}

// quantileSet holds the quantiles shown of a distribution, each the worst of its series.
type quantileSet struct{ p50, p95, p99 float64 }

func (q *quantileSet) raise(l result.Latency) {
	q.p50, q.p95, q.p99 = max(q.p50, l.P50), max(q.p95, l.P95), max(q.p99, l.P99)
}

// texts writes p50, p95 and p99; p95 as a dash where the run did not record it.
func (q quantileSet) texts() []string {
	out := []string{chart.Format(scenario.Seconds, q.p50), chart.None, chart.Format(scenario.Seconds, q.p99)}
	if q.p95 > 0 || q.p99 == 0 {
		out[1] = chart.Format(scenario.Seconds, q.p95)
	}
	return out
}

func sums(p result.Phase) phaseSums {
	var s phaseSums
	add := func(r result.Requests) {
		s.offered += r.OfferedRate
		s.achieved += r.AchievedRate
		s.unsent += r.Unsent
		s.latency.raise(r.Latency)
	}
	for _, r := range p.Requests {
		add(r)
	}
	for _, c := range p.Changes {
		add(c.Requests)
	}
	for _, w := range p.Watches {
		s.delivered += w.Delivered
		s.lost += w.Lost
		s.duplicated += w.Duplicated
		s.exp += w.Expected
		s.open += w.Open
		s.wanted += w.Wanted
		s.reordered += w.Reordered
		s.delivery.raise(w.Delivery)
	}
	return s
}

// phases writes a line per phase; columns that no phase fills are left out.
func (t *terminal) phases(r result.Result) {
	phases := r.Measurements.Phases
	if len(phases) == 0 {
		return
	}
	tab := &table{align: "frrrrrrrrrr", gap: 2}
	if t.width < 80 {
		tab.gap = 1
	}
	tab.add(styled("head", "PHASES", "took", "offered", "achieved", "unsent", "p50", "p95", "p99", "pods ready", "watches", "delivered")...)
	for _, p := range phases {
		s := sums(p)
		row := []string{chart.Clean(p.Name) + phaseNote(p), chart.Format(scenario.Seconds, p.Seconds()), "", "", "", "", "", "", "", "", ""}
		if len(p.Requests)+len(p.Changes) > 0 {
			row[2], row[3] = chart.Format(scenario.PerSec, s.offered), chart.Format(scenario.PerSec, s.achieved)
			row[4] = chart.Count(s.unsent)
			copy(row[5:], s.latency.texts())
		}
		if w := p.Workload; w != nil && w.PodsReady > 0 {
			row[8] = chart.Count(w.PodsReady)
		}
		if len(p.Watches) > 0 {
			row[9] = chart.Count(s.open)
			if s.open != s.wanted {
				row[9] += "/" + chart.Count(s.wanted)
			}
			if s.exp > 0 {
				row[10] = chart.Count(s.delivered)
			}
		}
		tab.add(plain(row...)...)
	}
	tab.dropEmpty()
	t.section(tab)
	for _, p := range phases {
		if s := sums(p); s.exp > 0 {
			q := s.delivery.texts()
			t.line(chart.Shorten(fmt.Sprintf("  %s: %s of %s watch events delivered, %s lost, %s duplicated, %s reordered", chart.Clean(p.Name),
				chart.Count(s.delivered), chart.Count(s.exp), chart.Count(s.lost), chart.Count(s.duplicated), chart.Count(s.reordered)), t.width))
			t.line(fmt.Sprintf("    delivery p50 %s, p95 %s, p99 %s", q[0], q[1], q[2]))
		}
		for _, l := range afterFailure(p) {
			t.line(chart.Shorten("  "+chart.Clean(p.Name)+": "+l, t.width))
		}
	}
}

// phaseNote marks a phase that did not end as the scenario says.
func phaseNote(p result.Phase) string {
	switch {
	case p.Interrupted:
		return " (interrupted)"
	case p.Until != "" && !p.ConditionMet:
		return " (" + chart.Clean(p.Until) + " not met)"
	}
	return ""
}

// afterFailure tells the times after a node failure.
func afterFailure(p result.Phase) []string {
	var out []string
	if w := p.Workload; w != nil && w.NotReadyAfter != nil {
		out = append(out, "failed nodes seen NotReady after "+chart.Format(scenario.Seconds, *w.NotReadyAfter))
	}
	if w := p.Workload; w != nil && w.RecoveredAfter != nil {
		out = append(out, "every Deployment whole again after "+chart.Format(scenario.Seconds, *w.RecoveredAfter))
	}
	return out
}

// dropEmpty blanks columns with nothing but a heading; lines leaves them out.
func (t *table) dropEmpty() {
	for i := range t.align {
		empty := true
		for _, row := range t.rows[1:] {
			empty = empty && row[i].text == ""
		}
		if empty {
			t.rows[0][i].text = ""
		}
	}
}

func (t *terminal) cost(r result.Result) {
	if len(r.Components) == 0 {
		return
	}
	tab := &table{align: "frrrr"}
	tab.add(styled("head", "COST", "CPU", "share", "memory", "descriptors")...)
	for _, c := range r.Components {
		tab.add(plain(costRow(c)...)...)
	}
	t.section(tab)
	if n := r.Measurements.Nodes; n != nil && n.MissedByGenerator+n.MissedByServer > 0 {
		t.line(chart.Shorten(fmt.Sprintf("  heartbeats: %s acknowledged, %s missed by us, %s by the server",
			chart.Count(n.Heartbeats), chart.Count(n.MissedByGenerator), chart.Count(n.MissedByServer)), t.width))
	}
	if s := r.Measurements.Scrapes; len(s.Failed) > 0 {
		var lost []string
		for _, name := range sortedKeys(s.Failed) {
			lost = append(lost, fmt.Sprintf("%s %s", chart.Clean(name), chart.Count(s.Failed[name])))
		}
		t.line(chart.Shorten(fmt.Sprintf("  scrapes: %s done, lost: %s", chart.Count(s.Done), strings.Join(lost, ", ")), t.width))
	}
}
