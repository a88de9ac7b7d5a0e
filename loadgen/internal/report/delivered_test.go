package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// shortRun is a run in which a load and an action did less than demanded; its one gate passed.
func shortRun() result.Result {
	r := stormRun()
	p := &r.Measurements.Phases[0]
	p.Requests = []result.Requests{{Load: "made", Verb: "create", Resource: "services", Offered: 200, Sent: 26, Unsent: 174, OfferedRate: 20, AchievedRate: 2.4, Backlog: 7}}
	p.Deliveries = []result.Delivery{
		{Name: "made", What: "requests", Asked: 200, Done: 24, AskedRate: 20, DoneRate: 2.4, Share: 0.12, Least: 0.95, Limit: result.LimitCluster, Why: "requests took 2 s (p50)"},
		{Name: "patch configmaps", Path: "phases.x.actions[0]", What: "rounds", Asked: 30, Done: 8, Share: 0.267, Least: 0.95, Limit: result.LimitAsked, Why: "too many"},
		{Name: "crowd", What: "watches", Asked: 100, Done: 100, Share: 1},
	}
	return r
}

// Demanded and delivered work of loads and actions are shown together, with the backlog; the headline says that they differ.
func TestAskedAndDoneAreShown(t *testing.T) {
	r := shortRun()
	got := summary(t, r, TerminalOptions{Width: 120})
	for _, want := range []string{"WORK ASKED FOR AND DONE", "20/s  2.4/s      12%  cluster", "patch configmaps", "30      8    26.7%  scenario", "backlog", "2 loads or actions below target"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	tables := map[string]table{}
	for _, table := range phaseTables(r) {
		tables[table.Caption] = table
	}
	name := terminal.Clean(r.Measurements.Phases[0].Name)
	if rows := fmt.Sprint(tables["Work asked for and done"].Rows); !strings.Contains(rows, name+" made requests 20/s 2.4/s 12% 95% cluster: requests took 2 s (p50)") || !strings.Contains(rows, "not judged") {
		t.Errorf("the table of the page: %s", rows)
	}
	if rows := fmt.Sprint(tables["Requests"].Rows); !strings.Contains(rows, "20/s 2.4/s 26 174 7") {
		t.Errorf("the backlog is not next to the unsent: %s", rows)
	}
}

// With many loads and phases the terminal shows each one that did less than demanded, and counts the rest.
func TestManyDeliveriesAreCounted(t *testing.T) {
	r := shortRun()
	for i := range 20 {
		p := &r.Measurements.Phases[1]
		p.Deliveries = append(p.Deliveries, result.Delivery{Name: fmt.Sprintf("load-%d", i), What: "requests", Asked: 10, Done: 10, AskedRate: 1, DoneRate: 1, Share: 1})
	}
	if got := summary(t, r, TerminalOptions{}); strings.Contains(got, "load-7") || !strings.Contains(got, "  all other loads and actions did at least 95% of their work in each phase") {
		t.Errorf("in\n%s", got)
	}
}
