package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func recoveryView(_ context.Context, p *page) (any, error) {
	if tables := recoveryTables(p.result, p.Grid); len(tables) > 0 {
		return tables, nil
	}
	return nil, nil
}

// recoveryTables are what faults did, and whether the signals moved. Empty:
// the run had neither. Times are on the page's axis.
func recoveryTables(r result.Result, axis chart.Grid) []tableView {
	var out []tableView
	if rec := r.Recovery; rec != nil {
		for _, t := range []tableView{loadRecoveryTable(*rec), faultTable(*rec, axis), handoverTable(*rec, axis), restartTable(*rec, axis)} {
			if len(t.Rows) > 0 {
				out = append(out, t)
			}
		}
		if len(out) > 0 && len(rec.Missing) > 0 {
			out[0].Note += " Missing: " + chart.Clean(strings.Join(rec.Missing, "; ")) + "."
		}
	}
	if len(r.Signals) > 0 {
		out = append(out, signalTable(r.Signals))
	}
	return out
}

// faultName is a fault in few words: what, and on what.
func faultName(f result.FaultRecovery) string {
	if len(f.On) == 0 {
		return chart.Clean(f.Kind)
	}
	on := strings.Join(f.On, ", ")
	if len(f.On) > 3 {
		on = fmt.Sprintf("%d components", len(f.On))
	}
	return chart.Clean(f.Kind + " on " + on)
}

// optional writes seconds that may be missing.
func optional(v *float64) string {
	if v == nil {
		return chart.None
	}
	return chart.Format(scenario.Seconds, *v)
}

func loadRecoveryTable(rec result.Recovery) tableView {
	t := tableView{
		Caption: "What the loads felt",
		Head:    heads("Fault", "Load", ">Error window", ">From", ">Until", ">First success", ">After the end", ">Back inside", ">Failed", ">Unsent", ">Slowest", "Note"),
		Note: fmt.Sprintf("Error window: from the first to the last tenth of a second in which a request failed, was not sent or took longer than the load's bound. "+
			"From, Until and First success count from the fault's begin; After the end is the same success since the fault's end, negative if it came before. Back inside counts from its end to the moment since which the load held its bound for %s. docs/reference/recovery.md has the definitions.",
			chart.Format(scenario.Seconds, rec.StretchSeconds)),
	}
	for _, f := range rec.Faults {
		for _, l := range f.Loads {
			slowest := chart.None
			if l.Affected {
				slowest = chart.Format(scenario.Seconds, l.Slowest)
			}
			t.add(faultName(f), chart.Clean(l.Load), windowText(l), optional(l.From), optional(l.Until), optional(l.FirstSuccess), optional(l.FirstSuccessAfterEnd),
				backText(l), chart.Count(l.Failed), chart.Count(l.Unsent), slowest, loadRecoveryNote(l))
		}
	}
	return t
}

// windowText is an error window, or how long it was at the least.
func windowText(l result.LoadRecovery) string {
	switch {
	case l.Silent:
		return "not known"
	case !l.Affected:
		return "none"
	}
	return least(l.Open, chart.Format(scenario.Seconds, l.ErrorWindow))
}

// backText is the time back inside the bound, or what it was more than. A load
// that never left it has not come back.
func backText(l result.LoadRecovery) string {
	if !l.Affected {
		return chart.None
	}
	if l.Back == nil && l.BackAtLeast != nil && *l.BackAtLeast > 0 {
		return "not in " + chart.Format(scenario.Seconds, *l.BackAtLeast)
	}
	return optional(l.Back)
}

func loadRecoveryNote(l result.LoadRecovery) string {
	parts := []string{"bound " + chart.Format(scenario.Seconds, l.Bound)}
	for _, o := range sortedKeys(l.Outcomes) {
		parts = append(parts, chart.Clean(o)+": "+chart.Count(l.Outcomes[o]))
	}
	if l.AlreadyFailing {
		parts = append(parts, "outside its bound before the fault too")
	}
	if l.Detail != "" {
		parts = append(parts, chart.Clean(l.Detail))
	}
	return strings.Join(parts, "; ")
}

func faultTable(rec result.Recovery, axis chart.Grid) tableView {
	t := tableView{
		Caption: "Faults",
		Head:    heads("Fault", "Phase", ">Began", ">Lasted", ">Relists", ">At most in 1 s", ">Last relist", ">Breaks", ">Lease failover", ">etcd failover"),
		Note:    "Relists and breaks of watches and nodes, until 30 s after the fault's end. A failover counts from when the former holder was hit to when its successor was seen.",
	}
	for _, f := range rec.Faults {
		lasted := "not undone"
		if f.End != nil {
			lasted = chart.Format(scenario.Seconds, f.End.Sub(f.Begin).Seconds())
		}
		s := f.Relists
		t.add(faultName(f), cmp.Or(chart.Clean(f.Phase), chart.None), chart.Clock(axis.At(f.Begin)), lasted, chart.Count(s.Relists), chart.Count(s.PeakPerSecond),
			optional(s.Last), chart.Count(s.Breaks), failoverText(f, f.LeaseFailover, false), failoverText(f, f.LeaderFailover, true))
	}
	return t
}

// failoverText is the longest failover of a lease, or of etcd's leader, or that
// one never came.
func failoverText(f result.FaultRecovery, longest *float64, ofEtcd bool) string {
	if slices.ContainsFunc(f.Leaderless, func(of string) bool { return (of == control.KindEtcd) == ofEtcd }) {
		return "no successor"
	}
	return optional(longest)
}

func handoverTable(rec result.Recovery, axis chart.Grid) tableView {
	t := tableView{Caption: "Who led", Head: heads("Of", "From", "To", ">At", ">Failover", "Because of")}
	for _, h := range rec.Handovers {
		t.add(chart.Clean(h.Of), cmp.Or(chart.Clean(h.From), chart.None), chart.Clean(h.To), chart.Clock(axis.At(h.At)), optional(h.Failover), causeName(rec, h.Fault, "nothing known"))
	}
	return t
}

func restartTable(rec result.Recovery, axis chart.Grid) tableView {
	t := tableView{Caption: "Restarts", Head: heads("Component", ">Ended", ">Ready again", ">Down", "Because of")}
	moment := func(at *time.Time) string {
		if at == nil {
			return chart.None
		}
		return chart.Clock(axis.At(*at))
	}
	for _, r := range rec.Restarts {
		t.add(chart.Clean(r.Component), moment(r.Exited), moment(r.Ready), optional(r.Down), causeName(rec, r.Fault, "nothing known"))
	}
	return t
}

// causeName names the fault with an ID.
func causeName(rec result.Recovery, id, otherwise string) string {
	i := slices.IndexFunc(rec.Faults, func(f result.FaultRecovery) bool { return f.ID == id })
	if id == "" || i < 0 {
		return otherwise
	}
	return faultName(rec.Faults[i])
}

func signalTable(signals []result.Signal) tableView {
	t := tableView{
		Caption: "Signals",
		Head:    heads("Signal", ">Moved by", ">Steady", ">Noise", ">Under the fault", ">At the end", "Returned", "Note"),
		Note:    "Moved by: how many times its own noise a metric left its steady mean, in the third of the samples that is farthest from it. Returned: the last third after the fault is near the steady mean again.",
	}
	for _, s := range signals {
		if s.Moved == nil {
			t.add(chart.Clean(s.Name), "no data", chart.None, chart.None, chart.None, chart.None, chart.None, chart.Clean(s.Detail))
			continue
		}
		in := func(v float64) string { return chart.Format(scenario.Unit(s.Unit), v) }
		note := chart.Clean(s.Detail)
		if s.Floor {
			note = strings.TrimPrefix(note+"; flat: noise taken as 1% of the largest value", "; ")
		}
		last := chart.None
		if s.Last != nil {
			last = in(*s.Last)
		}
		t.add(chart.Clean(s.Name), noises(s), in(s.Steady.Mean), in(s.Noise), in(s.Extreme), last, returned(s), note)
	}
	return t
}

func noises(s result.Signal) string { return chart.Number(*s.Moved, 3) + "× noise" }

func returned(s result.Signal) string {
	switch {
	case s.Returned == nil:
		return chart.None
	case *s.Returned:
		return "yes"
	}
	return "no"
}
