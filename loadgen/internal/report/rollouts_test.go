package report

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// hopsRun is a run with a rollout of 500 pods with a Service, and one that got stuck
// before a pod was bound.
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

func TestRolloutsAreReportedHopByHop(t *testing.T) {
	table := rolloutTable(rolledOut(hopsRun().Measurements.Phases))
	var got []string
	for _, row := range table.Rows {
		got = append(got, strings.Join(row[2:], " | "))
	}
	want := []string{
		"api write | 1 | 20 ms | 20 ms | –",
		"replicaset | 1 | 70 ms | 70 ms | 50 ms",
		"pods | 500 | 120 ms | 26.1 s | 26 s",
		"binding | 500 | 200 ms | 26.4 s | 300 ms",
		"ready | 500 | 1.1 s | 28.2 s | 1.8 s",
		"endpointslice | 500 | 2.1 s | 28.1 s | 0 s",
		"api write | 1 | 20 ms | 20 ms | –",
		"replicaset | 1 | 70 ms | 70 ms | 50 ms",
		"pods | 10 | 120 ms | 500 ms | 430 ms",
		"binding | 0 | – | – | –",
		"ready | 0 | – | – | –",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// Every row names its rollout for screen readers; other readers see the name once.
	for i, row := range table.Rows {
		rollout, again := "fill, deploy web, 500 pods", i > 0
		if i >= 6 {
			rollout, again = "storm, scale api, 10 pods, not complete", i > 6
		}
		if got := row[0] + ", " + row[1]; got != rollout || table.Again(i, 0) != again || table.Again(i, 1) != again || table.Again(i, 2) {
			t.Errorf("row %d = %q, repeated: %v", i, got, table.Again(i, 0))
		}
	}
	page := render(t, hopsRun(), nil)
	if n := strings.Count(page, `<span class="silent">deploy web, 500 pods</span>`); n != 5 {
		t.Errorf("the rollout's name is silent in %d rows, want 5", n)
	}
	if page := render(t, floodRun(), nil); strings.Contains(page, "Rollouts") {
		t.Error("a run without rollouts has a section of them")
	}
}

// A rollout's picture has a bar for each hop, from the hop's first object to its last, with a text if it fits. All bars
// have one axis. A hop that no object reached says so.
func TestRolloutWaterfall(t *testing.T) {
	falls, more := waterfalls(rolledOut(hopsRun().Measurements.Phases))
	if len(falls) != 2 || more != 0 {
		t.Fatalf("%d waterfalls and %d more", len(falls), more)
	}
	web := falls[0]
	if web.ID != "chart-rollout-fill-deploy-web" || web.Note != `Step "pods" added the most time: 26 s.` || web.Ticks[len(web.Ticks)-1].Label != "30 s" {
		t.Errorf("%+v", web)
	}
	for i, want := range []string{"20 ms", "70 ms", "500, 120 ms to 26.1 s", "500, 200 ms to 26.4 s", "500, 1.1 s to 28.2 s", "500, 2.1 s to 28.1 s"} {
		if b := web.Bars[i]; b.Text != want || b.Short {
			t.Errorf("%+v, want %q", b, want)
		}
	}
	stuck := falls[1].Bars[3]
	if stuck.Text != "no object" || stuck.X != "" || !stuck.Short || falls[1].Bars[2].Short || falls[1].Bars[1].Short {
		t.Errorf("where nothing arrived: %+v", stuck)
	}
	// Two rollouts of one name in a phase have different addresses.
	r := hopsRun()
	w := r.Measurements.Phases[0].Workload
	w.Rollouts = slices.Repeat(w.Rollouts, 8)
	falls, more = waterfalls(rolledOut(r.Measurements.Phases))
	if len(falls) != maxFalls || more != 3 || falls[1].ID != "chart-rollout-fill-deploy-web-2" || falls[1].Title != "deploy web, 500 pods (2)" {
		t.Errorf("%d falls, %d more, the second %q, %q", len(falls), more, falls[1].ID, falls[1].Title)
	}
}

func TestSummaryListsRollouts(t *testing.T) {
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
		if !strings.Contains(got, "5 more rollouts in the report") {
			t.Errorf("ten rollouts are not shortened:\n%s", got)
		}
		for _, l := range strings.Split(got, "\n") {
			if terminal.TextWidth(l) > width {
				t.Errorf("width %d: %d columns: %s", width, terminal.TextWidth(l), l)
			}
		}
	}
	if strings.Contains(summary(t, floodRun(), TerminalOptions{}), "ROLLOUTS") {
		t.Error("the summary of a run without rollouts has a section on rollouts")
	}
}

// waiting answers the query for requests that wait for kube-controller-manager's client with a number, and other
// queries with nothing.
type waiting float64

func (w waiting) Range(_ context.Context, expr string, start, _ time.Time, _ time.Duration) ([]chart.Series, error) {
	if w == 0 || !strings.Contains(expr, `rest_client_rate_limiter_duration_seconds_sum{job="kube-controller-manager", verb="POST"}[26100ms]`) {
		return nil, nil
	}
	return []chart.Series{{Points: []chart.Point{{T: start, V: float64(w)}}}}, nil
}

// If requests of kube-controller-manager waited for its own rate limiter, the rollout names the limit. A rolling update
// names no step, because its ReplicaSets are scaled in turns.
func TestRolloutNamesTheClientsLimit(t *testing.T) {
	const limited = "Limited by kube-controller-manager&#39;s client (--kube-api-qps 20): until all pods existed, 26 POST requests waited for its rate limiter on average."
	for what, c := range map[string]struct {
		action  string
		waiting waiting
		want    string
	}{
		"limited":        {"deploy", 26, "Step &#34;pods&#34; added the most time: 26 s. " + limited},
		"not limited":    {"deploy", .9, "Step &#34;pods&#34; added the most time: 26 s.</b>"},
		"not recorded":   {"deploy", 0, "Step &#34;pods&#34; added the most time: 26 s.</b>"},
		"rolling update": {"rollingUpdate", 26, "<b>" + limited},
	} {
		r := hopsRun()
		r.Measurements.Phases[0].Workload.Rollouts[0].Action = c.action
		if page := render(t, r, c.waiting); !strings.Contains(page, c.want) {
			t.Errorf("%s: %q is not on the page", what, c.want)
		}
	}
}
