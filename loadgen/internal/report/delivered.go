package report

import (
	"slices"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// deliveryTable returns a table with the work of loads and actions in each phase: the work that the scenario demanded,
// and the work that was done.
func deliveryTable(phases []result.Phase) table {
	t := table{
		Caption: "Work asked for and done",
		Head:    heads("Phase", "Load or action", "Unit", ">Asked for", ">Done", ">Done, %", ">Required, %", "Limited by"),
		Note:    "Asked for: the work that was due by the end of the phase. Work means requests that get an answer, watches that open, or the rounds (repetitions) of an action. If less than the required percentage was done, \"Limited by\" names the reason. If the reason is the cluster, the run fails. If the reason is the generator, the machine or the scenario (for example, maxInFlight is too low for the rate), the run has no verdict (NO DATA).",
	}
	for _, p := range phases {
		for _, d := range p.Deliveries {
			least := chart.Format(scenario.Ratio, d.Least)
			if d.Least == 0 {
				least = "not judged"
			}
			limit := d.Why
			if d.Limit != "" {
				limit = limitText(d.Limit) + ": " + d.Why
			}
			asked, done := deliveryTexts(d)
			t.add(terminal.Clean(p.Name), terminal.Clean(d.Name), terminal.Clean(d.What), asked, done, chart.Format(scenario.Ratio, d.Share), least, terminal.Clean(limit))
		}
	}
	return t
}

// limitText returns the word that reports show for the factor that limited the work of a load or an action.
func limitText(limit string) string {
	if limit == result.LimitAsked {
		return "scenario"
	}
	return terminal.Clean(limit)
}

// deliveryTexts formats the work that the scenario demanded and the work that was done: as rates if possible, otherwise
// as counts.
func deliveryTexts(d result.Delivery) (asked, done string) {
	if d.AskedRate > 0 {
		return chart.Format(scenario.PerSec, d.AskedRate), chart.Format(scenario.PerSec, d.DoneRate)
	}
	return chart.Count(d.Asked), chart.Count(d.Done)
}

// maxDelivered is the maximum number of rows in a summary. If there are more, one line replaces the rows in which
// enough work was done.
const maxDelivered = 8

// delivered writes a line for each load and action of a phase, with the work that was demanded and done.
func (t *terminalWriter) delivered(r result.Result) {
	type row struct {
		phase string
		result.Delivery
	}
	var all []row
	for _, p := range r.Measurements.Phases {
		for _, d := range p.Deliveries {
			all = append(all, row{p.Name, d})
		}
	}
	if len(all) == 0 {
		return
	}
	shown := all
	if len(all) > maxDelivered {
		shown = slices.DeleteFunc(slices.Clone(all), func(r row) bool { return r.Share >= scenario.DefaultMinAchieved && r.Limit == "" })
	}
	tab := newTable("~WORK ASKED FOR AND DONE", "unit", ">asked for", ">done", ">done, %", "limited by")
	for _, d := range shown {
		asked, done := deliveryTexts(d.Delivery)
		tab.add(terminal.Clean(d.phase+" "+d.Name), terminal.Clean(d.What), asked, done, chart.Format(scenario.Ratio, d.Share), limitText(d.Limit))
		switch d.Limit {
		case "":
		case result.LimitCluster:
			tab.style("fail", 5)
		default:
			tab.style("nodata", 5)
		}
	}
	if len(shown) > 0 {
		tab.dropEmpty()
		t.section(tab)
	} else {
		t.line("")
	}
	if more := len(all) - len(shown); more > 0 {
		which := "all other"
		if len(shown) == 0 {
			which = "all"
		}
		t.line("  " + which + " loads and actions did at least " + chart.Format(scenario.Ratio, scenario.DefaultMinAchieved) + " of their work in each phase")
	}
}

// undelivered counts the loads and actions that did so little work that the run cannot pass. It counts a load once,
// even if the load did too little in several phases.
func undelivered(phases []result.Phase) int {
	short := map[[2]string]bool{}
	for _, p := range phases {
		for _, d := range p.Deliveries {
			if d.Limit != "" {
				short[[2]string{d.Name, d.Path}] = true
			}
		}
	}
	return len(short)
}

// backlogOf counts the requests that had no response at the end of a phase.
func backlogOf(p result.Phase) (n int64) {
	for _, r := range rundir.Requests(p) {
		n += r.Backlog
	}
	return n
}
