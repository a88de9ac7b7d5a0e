package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// hopsRun is a run with a rollout of 500 pods with a Service, and one that got
// stuck with no pod bound.
func hopsRun() result.Result {
	hop := func(name string, n int64, first, last float64) result.Hop {
		return result.Hop{Name: name, Count: n, First: &first, Last: &last}
	}
	r := stormRun()
	r.Measurements.Phases[0].Workload.ToEndpoint = lat(500, .3)
	r.Measurements.Phases[0].Workload.Rollouts = []result.Rollout{{
		Deployment: "web", Action: "deploy", Pods: 500, Complete: true, Hops: []result.Hop{
			hop("api write", 1, .02, .02), hop("replicaset", 1, .07, .07), hop("pods", 500, .12, 26.1),
			hop("binding", 500, .2, 26.4), hop("ready", 500, 1.1, 28.2), hop("endpointslice", 500, 2.1, 28.1),
		},
	}}
	r.Measurements.Phases[2].Workload.Rollouts = []result.Rollout{{
		Deployment: "api", Action: "scale", Pods: 10, Hops: []result.Hop{
			hop("api write", 1, .02, .02), hop("replicaset", 1, .07, .07), hop("pods", 10, .12, 0.5), {Name: "binding"}, {Name: "ready"},
		},
	}}
	return r
}

func TestRolloutsAreToldHopByHop(t *testing.T) {
	tables := phaseTables(hopsRun())
	i := slices.IndexFunc(tables, func(t tableView) bool { return strings.HasPrefix(t.Caption, "Rollouts") })
	if i < 0 {
		t.Fatal("there is no table of rollouts")
	}
	var got []string
	for _, row := range tables[i].Rows {
		got = append(got, strings.Join(row, " | "))
	}
	want := []string{
		"fill | deploy web, 500 pods | api write | 1 | 20 ms | 20 ms | –",
		" |  | replicaset | 1 | 70 ms | 70 ms | 50 ms",
		" |  | pods | 500 | 120 ms | 26.1 s | 26 s",
		" |  | binding | 500 | 200 ms | 26.4 s | 300 ms",
		" |  | ready | 500 | 1.1 s | 28.2 s | 1.8 s",
		" |  | endpointslice | 500 | 2.1 s | 28.1 s | 0 s",
		"storm | scale api, 10 pods, not complete | api write | 1 | 20 ms | 20 ms | –",
		" |  | replicaset | 1 | 70 ms | 70 ms | 50 ms",
		" |  | pods | 10 | 120 ms | 500 ms | 430 ms",
		" |  | binding | 0 | – | – | –",
		" |  | ready | 0 | – | – | –",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if slices.ContainsFunc(phaseTables(floodRun()), func(t tableView) bool { return strings.HasPrefix(t.Caption, "Rollouts") }) {
		t.Error("a run without rollouts has a table of them")
	}
}

func TestTheSummaryTellsOfRollouts(t *testing.T) {
	r := hopsRun()
	got := summary(t, r, TerminalOptions{})
	for _, want := range []string{"ROLLOUTS", "deploy web, 500 pods ", "26.1 s", "28.2 s", "scale api, 10 pods, not complete"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the summary:\n%s", want, got)
		}
	}
	one := r.Measurements.Phases[0].Workload.Rollouts[0]
	r.Measurements.Phases[0].Workload.Rollouts = slices.Repeat([]result.Rollout{one}, 9)
	for _, width := range []int{72, 100, 120} {
		got := summary(t, r, TerminalOptions{Width: width})
		if !strings.Contains(got, "and 5 more, in the report") {
			t.Errorf("ten rollouts are not shortened:\n%s", got)
		}
		for _, l := range strings.Split(got, "\n") {
			if textWidth(l) > width {
				t.Errorf("width %d: %d columns: %s", width, textWidth(l), l)
			}
		}
	}
	if strings.Contains(summary(t, floodRun(), TerminalOptions{}), "ROLLOUTS") {
		t.Error("the summary of a run without rollouts tells of them")
	}
}
