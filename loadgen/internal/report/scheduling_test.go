package report

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// schedulingRun placed pods in two phases, and in one its scheduler restarted.
func schedulingRun() result.Result {
	r := stormRun()
	split := func(phase string, attempts int64) result.Scheduling {
		n, executions := float64(attempts), 10*attempts
		return result.Scheduling{
			Phase: phase, Attempts: attempts,
			Points: []result.ExtensionPoint{
				{Name: "Bind", Count: attempts, Mean: .02, P99: ptr(.1), Seconds: n * .02},
				{Name: "Filter", Count: attempts, Mean: .004, P99: ptr(.009), Seconds: n * .004},
				{Name: "PostFilter", Count: 1, Mean: .5, Seconds: .5},
			},
			Plugins: []result.PluginTime{
				{Plugin: "DefaultBinder", Point: "Bind", Executions: &attempts, Measured: attempts / 10, Mean: .02, Seconds: n * .02},
				{Plugin: "InterPodAffinity", Point: "Filter", Executions: &executions, Measured: attempts, Mean: .0003, Seconds: n * .003},
				{Plugin: "NodeResourcesFit", Point: "Filter", Executions: &executions, Measured: attempts, Mean: .0001, Seconds: n * .001},
				{Plugin: "NodePorts", Point: "Sign", Measured: attempts, Mean: 1e-6, Seconds: n * 1e-6},
			},
		}
	}
	r.Scheduling = []result.Scheduling{split("fill", 500), {Phase: "storm", Missing: "kube-scheduler-0 restarted in storm"}, split("recovery", 20)}
	return r
}

func TestSchedulerIsReported(t *testing.T) {
	points, plugins := pointTable(schedulingRun().Scheduling), pluginTable(schedulingRun().Scheduling)
	for _, want := range []struct {
		table table
		row   string
	}{
		{points, "fill | 500 | Filter | 500 | 4 ms | 9 ms | 2 s | 4 ms"},
		{points, "fill | 500 | PostFilter | 1 | 500 ms | – | 500 ms | 1 ms"},
		{points, "storm | – | not known: kube-scheduler-0 restarted in storm |  |  |  |  | "},
		{plugins, "fill | InterPodAffinity | Filter | 5,000 | 500 | 300 µs | 1.5 s | 12%"},
		{plugins, "fill | NodePorts | Sign | – | 500 | 1 µs | 500 µs | <1%"},
	} {
		var all []string
		for _, row := range want.table.Rows {
			all = append(all, strings.Join(row, " | "))
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, want.row) {
			t.Errorf("no row %q in\n%s", want.row, text)
		}
	}
	var page, terminal bytes.Buffer
	if err := HTML(context.Background(), &page, schedulingRun(), nil, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "InterPodAffinity") {
		t.Error("the page has no plugin")
	}
	if err := Terminal(&terminal, schedulingRun(), TerminalOptions{Width: 120}); err != nil {
		t.Fatal(err)
	}
	// With few attempts nothing is known of plugins.
	if got := terminal.String(); !strings.Contains(got, "InterPodAffinity 75%, NodeResourcesFit 25%") || strings.Count(got, "InterPodAffinity") != 1 {
		t.Error(got)
	}
}
