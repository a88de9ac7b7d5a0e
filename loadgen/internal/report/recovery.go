package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/terminal"
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

// recoveryTables returns tables on the effects of faults and on the signals, or nil if the run had neither. Times
// count from the start of the page's axis.
func recoveryTables(r result.Result, axis chart.Grid) []table {
	var out []table
	if rec := r.Recovery; rec != nil {
		for _, t := range []table{loadRecoveryTable(*rec), faultTable(*rec, axis), handoverTable(*rec, axis), restartTable(*rec, axis)} {
			if len(t.Rows) > 0 {
				out = append(out, t)
			}
		}
		if len(out) > 0 && len(rec.Missing) > 0 {
			out[0].Note += " Missing: " + terminal.Clean(strings.Join(rec.Missing, "; ")) + "."
		}
	}
	if len(r.Signals) > 0 {
		out = append(out, signalTable(r.Signals))
	}
	return out
}

// faultName describes a fault by its kind and its targets.
func faultName(f result.FaultRecovery) string {
	if len(f.On) == 0 {
		return terminal.Clean(f.Kind)
	}
	on := strings.Join(f.On, ", ")
	if len(f.On) > 3 {
		on = fmt.Sprintf("%d components", len(f.On))
	}
	return terminal.Clean(f.Kind + " on " + on)
}

// optional formats a time in seconds. It returns chart.None for nil.
func optional(v *float64) string { return formatIn(string(scenario.Seconds), v) }

// formatIn formats a value in a unit. It returns chart.None for nil.
func formatIn(unit string, v *float64) string {
	if v == nil {
		return chart.None
	}
	return chart.Format(scenario.Unit(unit), *v)
}

func loadRecoveryTable(rec result.Recovery) table {
	t := table{
		Caption: "Effects on the loads",
		Head:    heads("Fault", "Load", ">Outside its bound for", "Because of", ">From", ">Until", ">First success", ">First success after the end", ">Back inside after", ">Failed", ">Unsent", ">Slowest request", "Note"),
		Note: fmt.Sprintf("A load is outside its bound while its requests fail (errors), cannot be sent (unsent) or take longer than the bound (slow). Outside its bound for: the time from the first to the last such request. "+
			"From, Until and First success count from the start of the fault. First success after the end counts from the end of the fault, and is negative if requests succeeded before the end. Back inside after: from the end of the fault until the load stayed inside its bound for %s. docs/reference/recovery.md has the definitions.",
			seconds(rec.StretchSeconds)),
	}
	for _, f := range rec.Faults {
		for _, l := range f.Loads {
			slowest := chart.None
			if l.Affected {
				slowest = seconds(l.Slowest)
			}
			t.add(faultName(f), terminal.Clean(l.Load), windowText(l), cmp.Or(outsideBy(l), chart.None), optional(l.From), optional(l.Until), optional(l.FirstSuccess), optional(l.FirstSuccessAfterEnd),
				backText(l), chart.Count(l.Failed), chart.Count(l.Unsent), slowest, loadRecoveryNote(l))
		}
	}
	return t
}

// windowText formats the length of an error window. If the window was open when the run ended, it adds "≥".
func windowText(l result.LoadRecovery) string {
	switch {
	case l.Silent:
		return "not known"
	case !l.Affected:
		return "none"
	}
	return least(l.Open, seconds(l.ErrorWindow))
}

// outsideBy names the reasons why a load was outside its latency bound: errors, unsent requests or slow responses.
func outsideBy(l result.LoadRecovery) string {
	var what []string
	if l.Failed > 0 {
		what = append(what, "errors")
	}
	if l.Unsent > 0 {
		what = append(what, "unsent")
	}
	if l.Affected && (l.SlowSlots > 0 || l.Slowest > l.Bound) {
		what = append(what, "slow")
	}
	return strings.Join(what, ", ")
}

// backText formats the time until a load was inside its bound again, or a minimum of that time. It returns a dash for a
// load that never left its bound.
func backText(l result.LoadRecovery) string {
	if !l.Affected {
		return chart.None
	}
	if l.Back == nil && l.BackAtLeast != nil && *l.BackAtLeast > 0 {
		return least(true, seconds(*l.BackAtLeast))
	}
	return optional(l.Back)
}

func loadRecoveryNote(l result.LoadRecovery) string {
	parts := []string{"bound " + seconds(l.Bound)}
	for _, o := range sortedKeys(l.Outcomes) {
		parts = append(parts, terminal.Clean(o)+": "+chart.Count(l.Outcomes[o]))
	}
	if l.AlreadyFailing {
		parts = append(parts, "the load was outside its bound before the fault too")
	}
	if l.Detail != "" {
		parts = append(parts, terminal.Clean(l.Detail))
	}
	return strings.Join(parts, "; ")
}

// inAWord shortens the text of outsideBy to one word for a narrow column.
func inAWord(by string) string {
	switch strings.Count(by, ", ") {
	case 0:
		return by
	case 1:
		return "both"
	}
	return "all 3"
}

func faultTable(rec result.Recovery, axis chart.Grid) table {
	t := table{
		Caption: "Faults",
		Head:    heads("Fault", "Phase", ">Began", ">Duration", ">Relists", ">Most relists in 1 s", ">Last relist", ">Broken watches", ">Lease failover", ">etcd failover"),
		Note:    "Relists and broken watches are counted for loads and simulated nodes, until 30 s after the end of the fault. Last relist counts from the start of the fault. Failover: from the loss of the old leader until a new leader was seen (the longest one).",
	}
	for _, f := range rec.Faults {
		lasted := "until the end"
		if f.End != nil {
			lasted = seconds(f.End.Sub(f.Begin).Seconds())
		}
		s := f.Relists
		t.add(faultName(f), cmp.Or(terminal.Clean(f.Phase), chart.None), chart.Clock(axis.At(f.Begin)), lasted, chart.Count(s.Relists), chart.Count(s.PeakPerSecond),
			optional(s.Last), chart.Count(s.Breaks), failoverText(f, f.LeaseFailover, false), failoverText(f, f.LeaderFailover, true))
	}
	return t
}

// failoverText formats longest: the longest failover of a lease, or of etcd's leader if ofEtcd is set. If a failover
// never ended, it returns "no successor".
func failoverText(f result.FaultRecovery, longest *float64, ofEtcd bool) string {
	if slices.ContainsFunc(f.Leaderless, func(of string) bool { return (of == control.KindEtcd) == ofEtcd }) {
		return "no successor"
	}
	return optional(longest)
}

func handoverTable(rec result.Recovery, axis chart.Grid) table {
	t := table{Caption: "Leader changes", Head: heads("Lease or etcd", "Old leader", "New leader", ">Time", ">Failover", "Cause")}
	for _, h := range rec.Handovers {
		t.add(terminal.Clean(h.Of), cmp.Or(terminal.Clean(h.From), chart.None), terminal.Clean(h.To), chart.Clock(axis.At(h.At)), optional(h.Failover), causeName(rec, h.Fault))
	}
	return t
}

func restartTable(rec result.Recovery, axis chart.Grid) table {
	t := table{Caption: "Restarts", Head: heads("Component", ">Ended", ">Ready again", ">Downtime", "Cause")}
	moment := func(at *time.Time) string {
		if at == nil {
			return chart.None
		}
		return chart.Clock(axis.At(*at))
	}
	for _, r := range rec.Restarts {
		t.add(terminal.Clean(r.Component), moment(r.Exited), moment(r.Ready), optional(r.Down), causeName(rec, r.Fault))
	}
	return t
}

func causeName(rec result.Recovery, id string) string {
	i := slices.IndexFunc(rec.Faults, func(f result.FaultRecovery) bool { return f.ID == id })
	if id == "" || i < 0 {
		return "unknown"
	}
	return faultName(rec.Faults[i])
}

func signalTable(signals []result.Signal) table {
	t := table{
		Caption: "Signals",
		Head:    heads("Signal", ">Change", ">Mean before the fault", ">Noise", ">Mean during the fault", ">Mean at the end", "Returned", "Note"),
		Note:    "A signal is a metric that the scenario names in `signals`. Noise: the standard deviation before the fault. Mean during the fault: the mean of the third of the samples that is farthest from the mean before the fault. Change: the difference between these two means, as a multiple of the noise. Mean at the end: the mean of the last third of the samples after the fault. Returned: whether it is near the mean before the fault.",
	}
	for _, s := range signals {
		if s.Moved == nil {
			t.add(terminal.Clean(s.Name), "no data", chart.None, chart.None, chart.None, chart.None, chart.None, terminal.Clean(s.Detail))
			continue
		}
		in := func(v float64) string { return formatIn(s.Unit, &v) }
		note := terminal.Clean(s.Detail)
		if s.Floor {
			note = strings.TrimPrefix(note+"; the metric was constant, so 1% of its largest value counts as noise", "; ")
		}
		t.add(terminal.Clean(s.Name), noises(s), in(s.Steady.Mean), in(s.Noise), in(s.Extreme), formatIn(s.Unit, s.Last), returned(s), note)
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

// maxFaults is the maximum number of faults in a summary. The report has all faults.
const maxFaults = 5

// recovery writes a line for each load under each fault, and one for each signal.
func (t *terminalWriter) recovery(r result.Result) {
	if rec := r.Recovery; rec != nil && len(rec.Faults) > 0 {
		tab := newTable("~RECOVERY", "load", ">outside", "by", ">first success", ">back inside", ">relists", ">failover")
		rows := 0
		for _, f := range rec.Faults {
			for _, row := range recoveryRows(f) {
				if rows++; rows <= maxFaults {
					tab.add(row...)
				}
			}
		}
		tab.dropEmpty()
		relists := ""
		if tab.natural() > t.width {
			relists = tab.takeColumn(6)
		}
		t.section(tab)
		if relists != "" {
			t.wrapped("  ", "relists: "+relists)
		}
		if slices.ContainsFunc(rec.Faults, func(f result.FaultRecovery) bool { return len(f.Loads) > 0 }) {
			t.wrapped("  ", "outside: from the first to the last request that failed, was not sent or took longer than the load's bound. "+
				"back inside: from the end of the fault until the load stayed inside its bound.")
		}
		t.more(rows-maxFaults, "row")
	}
	if len(r.Signals) == 0 {
		return
	}
	tab := newTable("~SIGNALS", ">change", ">before fault", ">during fault", "returned")
	for _, s := range r.Signals {
		if s.Moved == nil {
			tab.add(terminal.Clean(s.Name), "NO DATA", "", "", "")
			continue
		}
		tab.add(terminal.Clean(s.Name), noises(s), chart.Format(scenario.Unit(s.Unit), s.Steady.Mean), chart.Format(scenario.Unit(s.Unit), s.Extreme), returned(s))
	}
	t.section(tab)
	for _, s := range r.Signals {
		if s.Moved == nil {
			t.line(t.paint("dim", terminal.Shorten("  "+terminal.Clean(s.Name)+": "+terminal.Clean(s.Detail), t.width)))
		}
	}
}

// recoveryRows returns the rows of a fault: one for each load, or a single row if there was no load.
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
		return [][]string{{faultName(f), "", "", "", "", "", relists, failover}}
	}
	var rows [][]string
	for i, l := range f.Loads {
		row := []string{faultName(f), terminal.Clean(l.Load), windowText(l), inAWord(outsideBy(l)), "", backText(l), relists, failover}
		if i > 0 {
			row[0], row[6], row[7] = "", "", ""
		}
		if l.FirstSuccess != nil {
			row[4] = seconds(*l.FirstSuccess)
		}
		rows = append(rows, row)
	}
	return rows
}

// layTracks adds tracks for faults, leaders and restarts to the time axis of the page.
func (p *page) layTracks(rec *result.Recovery) {
	if rec == nil {
		return
	}
	faults := chart.Track{Name: chart.FaultsTrack, Tells: "Each bar runs from the start to the end of a fault. A line is a fault without a duration."}
	for _, f := range rec.Faults {
		end := p.Grid.End()
		if f.End != nil {
			end = *f.End
		}
		title := fmt.Sprintf("%s, from %s, for %s", faultName(f), chart.Clock(p.Grid.At(f.Begin)), seconds(end.Sub(f.Begin).Seconds()))
		p.AddBar(&faults, "fault", f.Begin, end, faultName(f), title)
	}
	all := []chart.Track{faults}
	for _, h := range rec.Handovers {
		i := slices.IndexFunc(all, func(t chart.Track) bool { return t.Name == leadTitle(h.Of) })
		if i < 0 {
			i = len(all)
			all = append(all, chart.Track{Name: leadTitle(h.Of), Tells: "Each bar is a time without a leader. It ends when the new leader was seen."})
		}
		from, took := h.At, "loss of the old leader not seen"
		if h.Lost != nil {
			from, took = *h.Lost, "failover "+optional(h.Failover)
		}
		title := fmt.Sprintf("%s: from %s to %s at %s, %s", terminal.Clean(h.Of), terminal.Clean(h.From), terminal.Clean(h.To), chart.Clock(p.Grid.At(h.At)), took)
		p.AddBar(&all[i], "lead", from, h.At, "to "+terminal.Clean(h.To), title)
	}
	restarts := chart.Track{Name: "Restarts", Tells: "Each bar runs from the end of a process until its next process was ready."}
	for _, r := range rec.Restarts {
		from, end := cmp.Or(r.Exited, r.Ready), p.Grid.End()
		if r.Ready != nil {
			end = *r.Ready
		}
		title := fmt.Sprintf("%s ended at %s, downtime %s", terminal.Clean(r.Component), chart.Clock(p.Grid.At(*from)), optional(r.Down))
		p.AddBar(&restarts, "restart", *from, end, terminal.Clean(r.Component), title)
	}
	for _, t := range append(all, restarts) {
		if len(t.Bars) > 0 {
			t.Label()
			p.Tracks = append(p.Tracks, t)
		}
	}
}

func leadTitle(of string) string {
	if of == "etcd" {
		return "etcd leader"
	}
	return terminal.Clean(of) + " lease"
}
