package report

import (
	"fmt"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// layTracks puts what happened on the page's axis.
func (p *page) layTracks(rec *result.Recovery) {
	if rec == nil {
		return
	}
	faults := chart.Track{Name: chart.FaultsTrack, Tells: "From begin to end. A line: a fault without length."}
	var ends []time.Time
	for _, f := range rec.Faults {
		end := p.Grid.End()
		if f.End != nil {
			end = *f.End
		}
		title := fmt.Sprintf("%s, from %s, for %s", faultName(f), chart.Clock(p.Grid.At(f.Begin)), chart.Format(scenario.Seconds, end.Sub(f.Begin).Seconds()))
		p.AddBar(&faults, &ends, "fault", f.Begin, end, faultName(f), title)
	}
	leads := map[string]*chart.Track{}
	var order []string
	for _, h := range rec.Handovers {
		t := leads[h.Of]
		if t == nil {
			t = &chart.Track{Name: leadTitle(h.Of), Tells: "Marked when the new holder was seen; the bar is the time without one."}
			leads[h.Of] = t
			order = append(order, h.Of)
		}
		from, took := h.At, "no known loss"
		if h.Lost != nil {
			from, took = *h.Lost, "failover "+optional(h.Failover)
		}
		title := fmt.Sprintf("%s: %s to %s at %s, %s", chart.Clean(h.Of), chart.Clean(h.From), chart.Clean(h.To), chart.Clock(p.Grid.At(h.At)), took)
		var ends []time.Time
		p.AddBar(t, &ends, "lead", from, h.At, "to "+chart.Clean(h.To), title)
	}
	restarts := chart.Track{Name: "Restarts", Tells: "From a process's end until the next is ready."}
	ends = nil
	for _, r := range rec.Restarts {
		from, to := r.Exited, r.Ready
		end := p.Grid.End()
		if from == nil {
			from = to
		}
		if to != nil {
			end = *to
		}
		title := fmt.Sprintf("%s ended at %s, down %s", chart.Clean(r.Component), chart.Clock(p.Grid.At(*from)), optional(r.Down))
		p.AddBar(&restarts, &ends, "restart", *from, end, chart.Clean(r.Component), title)
	}
	all := []chart.Track{faults}
	for _, of := range order {
		all = append(all, *leads[of])
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
	return chart.Clean(of) + " lease"
}
