package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

func summary(t *testing.T, r result.Result, o TerminalOptions) string {
	t.Helper()
	var out strings.Builder
	if err := Terminal(&out, r, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSummaries(t *testing.T) {
	for name, r := range map[string]result.Result{"storm": stormRun(), "flood": floodRun(), "blind": blindRun(), "cut": cutRun()} {
		t.Run(name, func(t *testing.T) {
			got := summary(t, r, TerminalOptions{Dir: "runs/" + r.Run.ID})
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s(go test -run Summaries -update rewrites it)", got, want)
			}
			if n := strings.Count(got, "\n"); n > 46 {
				t.Errorf("%d lines do not fit a screen of 46", n)
			}
		})
	}
}

func TestSummaryFitsItsWidth(t *testing.T) {
	r := stormRun()
	r.Gates[3].Name = strings.Repeat("a-very-long-gate-name-", 6)
	r.Gates[1].Name = strings.Repeat("another-long-gate-name-", 6)
	r.Measurements.Phases[1].Name = strings.Repeat("phase", 30)
	r.Components[0].Name = strings.Repeat("component", 20)
	r.Reasons = append(r.Reasons, strings.Repeat("because ", 60))
	r.Key[1].Rows[0].Label = strings.Repeat("VERB", 40)
	for _, width := range []int{72, 80, 92, 100, 120} {
		for i, l := range strings.Split(summary(t, r, TerminalOptions{Width: width}), "\n") {
			if terminal.TextWidth(l) > width {
				t.Errorf("width %d: line %d has %d columns: %s", width, i+1, terminal.TextWidth(l), l)
			}
		}
	}
}

// A summary without a report, for example after `judge` with other gates, is complete: why a gate has no data, when
// which alert fired, and the whole name of every gate.
func TestSummaryWithoutReportIsComplete(t *testing.T) {
	long := strings.Repeat("a reason that has to be read to its end, ", 5) + "and this is it"
	fired := 1.0
	r := stormRun()
	r.Gates = []result.Gate{
		{Name: "blind", Objective: "wal-fsync", Op: "<=", Unit: "seconds", Verdict: result.NoData, Detail: long, Over: []string{"storm"}},
		{Name: "page", Objective: "alert", Op: "<=", Unit: "count", Value: &fired, Verdict: result.Fail, Detail: "page: fired 73 s after the start of storm, for 15 s: etcd-1", Over: []string{"storm"}},
	}
	for _, name := range []string{"one", "two", "three"} {
		r.Gates = append(r.Gates, result.Gate{Name: strings.Repeat(name+"-and-more-", 4), Objective: "alert", Op: "<=", Unit: "count", Value: new(float64), Verdict: result.Pass})
		r.Gates = append(r.Gates, result.Gate{Name: name, Objective: "alert", Op: "<=", Unit: "count", Value: new(float64), Verdict: result.Pass})
	}
	got := summary(t, r, TerminalOptions{})
	for _, want := range []string{"and this is it", "\n         fired 73 s after the start of storm, for 15 s: etcd-1\n", r.Gates[2].Name + " ", r.Gates[6].Name + " "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "report.html") {
		t.Error("the summary names a report that was not written")
	}
	if got := summary(t, r, TerminalOptions{Dir: "runs/x"}); strings.Contains(got, "and this is it") || !strings.Contains(got, "runs/x/report.html") {
		t.Errorf("with a report in the directory:\n%s", got)
	}
}

func TestColourOnlyRepeatsTheWords(t *testing.T) {
	r := stormRun()
	plainText, coloured := summary(t, r, TerminalOptions{}), summary(t, r, TerminalOptions{Color: true})
	if strings.Contains(plainText, "\x1b") {
		t.Error("the summary has colours although they are off")
	}
	if !strings.Contains(coloured, "\x1b[1;31mFAIL\x1b[0m") {
		t.Error("the summary has no colours although they are on")
	}
	for _, code := range []string{"1;31", "1;33", "32", "1", "2", "0"} {
		coloured = strings.ReplaceAll(coloured, "\x1b["+code+"m", "")
	}
	if coloured != plainText {
		t.Error("colour changes the text")
	}
}

func TestFourKeyMetricsAlways(t *testing.T) {
	for _, r := range []result.Result{stormRun(), blindRun(), cutRun()} {
		got := summary(t, r, TerminalOptions{})
		for _, name := range []string{keyFsync, keyRequests, keyScheduling, keyLeaders} {
			if !strings.Contains(got, name) {
				t.Errorf("%s is not in the summary", name)
			}
		}
	}
}

// A phase's row has the latencies of one load. If the phase has several loads, the row names this load.
func TestPhaseRowHasLatenciesOfOneLoad(t *testing.T) {
	r := floodRun()
	get, update := r.Measurements.Phases[0].Requests[0], r.Measurements.Phases[0].Requests[0]
	get.Load, get.Latency = "reads", result.Latency{Count: 500, P50: 0.0021, P95: 0.0321, P99: 0.0845}
	update.Load, update.Latency = "writes", result.Latency{Count: 500, P50: 0.00583, P95: 0.0433, P99: 0.0511}
	for _, requests := range [][]result.Requests{{get, update}, {update, get}} {
		r.Measurements.Phases[0].Requests = requests
		for _, width := range []int{72, 100, 120} {
			found := false
			for _, line := range strings.Split(summary(t, r, TerminalOptions{Width: width}), "\n") {
				if !strings.Contains(line, "84.5 ms") {
					continue
				}
				found = true
				for _, want := range []string{"2.1 ms", "32.1 ms"} {
					if !strings.Contains(line, want) {
						t.Errorf("width %d: %q next to 84.5 ms is not of the same load: %s", width, want, line)
					}
				}
				if width > 100 && !strings.Contains(line, "reads") {
					t.Errorf("the row does not name its load: %s", line)
				}
			}
			if !found || !strings.Contains(summary(t, r, TerminalOptions{Width: width}), "reads") {
				t.Errorf("width %d: the slowest load is not shown", width)
			}
		}
	}
	r.Measurements.Phases[0].Requests = []result.Requests{get}
	if got := summary(t, r, TerminalOptions{Width: 120}); strings.Contains(got, "reads") {
		t.Error("the only load of a phase takes a column for its name")
	}
}

// Latencies of deliveries come from one set of watches.
func TestDeliveriesAreOfOneSetOfWatches(t *testing.T) {
	p := result.Phase{Name: "storm", Watches: []result.Watches{
		{Load: "few", Expected: 10, Delivered: 10, Delivery: result.Latency{Count: 10, P50: 0.009, P95: 0.02, P99: 0.03}},
		{Load: "many", Expected: 90, Delivered: 90, Delivery: result.Latency{Count: 90, P50: 0.001, P95: 0.04, P99: 0.05}},
	}}
	got := deliveryLines(p)
	if len(got) != 2 || !strings.Contains(got[0], "100 of 100") || !strings.Contains(got[1], "delivery time of many: p50 1 ms, p95 40 ms, p99 50 ms") {
		t.Errorf("%q", got)
	}
}

// On the terminal, a failed gate on an alert says how far its rule looks back.
func TestFailedAlertTellsHowFarItLooksBack(t *testing.T) {
	r := floodRun()
	r.Gates[0] = gate("disk", "alert", result.Fail, ptr(1), "<=", 0, "count", "settle")
	r.Gates[0].Detail = "EtcdWALFsyncSlow: fired 34.6 s after the start of settle, and was still firing at the end of the run, 642 ms later: WAL fsync of etcd-0 is slow (fired at 03:01:43; its rules look back 3m0s, to 02:58:43, in flood)"
	got := strings.Join(strings.Fields(summary(t, r, TerminalOptions{Width: 100, Dir: "runs/x"})), " ")
	if !strings.Contains(got, "look back 3m0s, to 02:58:43, in flood") {
		t.Errorf("the summary cuts off the text about the alert:\n%s", got)
	}
}

// A gate that passed shows where its value comes from, and the objective if the gate has another name: the page the
// whole source, the summary the first part of it. With many such gates, the summary shows two on a line, without the sources.
func TestPassingGatesShowTheSourceOfTheirValue(t *testing.T) {
	r := stormRun()
	r.Gates = []result.Gate{
		{Name: "lost", Objective: "watch-lost", Op: "<=", Unit: "count", Value: new(float64), Verdict: result.Pass, Over: []string{"storm"}, Detail: "storm/crowd: of 11800 expected events"},
		{Name: "writes", Objective: "expr", Op: "<=", Unit: "seconds", Value: ptr(.572), Bound: 1, Verdict: result.Pass, Over: []string{"storm"}, Detail: "worst of 30 values: storm, PATCH events: p99 between 400 ms and 600 ms (slowest of 28 observations by kube-apiserver)"},
		{Name: "missed-heartbeats", Objective: "missed-heartbeats", Op: "<=", Unit: "count", Value: new(float64), Verdict: result.Pass, Detail: "the run: counts only misses caused by loadgen"},
		{Name: "took", Objective: "phase-duration", Op: "<=", Unit: "seconds", Value: ptr(9), Bound: 60, Verdict: result.Pass, Over: []string{"storm"}, Detail: "storm"},
	}
	text, page := summary(t, r, TerminalOptions{}), render(t, r, nil)
	for _, want := range []string{
		"≤ 0    watch-lost, storm/crowd: of 11800 expected events\n", "≤ 1 s  storm, PATCH events: p99 between 400 ms and 600 ms\n",
		"≤ 0    the run: counts only misses caused by loadgen\n", "≤ 1m   phase-duration\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, want := range []string{
		"<small>phase storm, watch-lost</small>", `<td colspan="4">storm/crowd: of 11800 expected events</td>`, `<td colspan="4">the run: counts only misses caused by loadgen</td>`, "<small>phase storm, phase-duration</small>",
		`<td colspan="4">worst of 30 values: storm, PATCH events: p99 between 400 ms and 600 ms (slowest of 28 observations by kube-apiserver)</td>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	r.Gates = slices.Concat(r.Gates, r.Gates, r.Gates)
	if text := summary(t, r, TerminalOptions{}); !strings.Contains(text, "PASS  lost                    0  ≤ 0      PASS  ") || strings.Contains(text, "watch-lost") {
		t.Errorf("12 gates:\n%s", text)
	}
}
