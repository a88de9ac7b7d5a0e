package report

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/judge/recovery"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// failoverRun is a run on three etcd members in which the leading scheduler is killed,
// and then etcd's leader is paused.
func failoverRun() result.Result {
	r := stormRun()
	r.Run.Scenario, r.Run.Overrides = "component-loss", nil
	r.Measurements.Nodes = nil
	r.Measurements.Phases = []result.Phase{
		{Name: "calm", Start: at(6), End: at(60)}, {Name: "scheduler", Start: at(60), End: at(110)},
		{Name: "etcd", Start: at(110), End: at(160)}, {Name: "after", Start: at(160), End: at(200)},
	}
	r.Run.Ended = at(204)
	r.Breakdown = nil
	r.Recovery = recovery.Analyse(&rundir.Recorded{Timeline: failoverEvents(r), Slots: failoverPulse(), Measurements: r.Measurements})
	yes, no := true, false
	moved, last := 41.7, 0.0031
	r.Signals = []result.Signal{
		{Name: "fsync", Expr: "x", Steady: result.SignalWindow{Phases: []string{"calm"}, Samples: 9, Mean: .0029, StdDev: .0007}, Under: result.SignalWindow{Samples: 8},
			Noise: .0007, Extreme: .0321, Moved: &moved, Returned: &yes, Last: &last},
		{Name: "leader-changes", Steady: result.SignalWindow{Samples: 9}, Noise: .01, Floor: true, Extreme: 1, Moved: ptr(100), Returned: &no, Last: ptr(1)},
		{Name: "webhook", Detail: "only 0 samples in the steady phases; at least 3 are required (the expression returned no number in these phases)"},
	}
	return r
}

func failoverEvents(r result.Result) []result.Event {
	e := func(s float64, kind result.EventKind, name, fault string, on ...string) result.Event {
		return result.Event{Time: at(s), Kind: kind, Name: name, Fault: fault, On: on}
	}
	return slices.Concat([]result.Event{e(5, "lease", "kube-scheduler-1", ""), e(5.2, "etcd-leader", "etcd-0", "")}, events(r), []result.Event{
		e(65, "fault-begin", "kill", "1", "kube-scheduler-1"), e(65.01, "exit", "kube-scheduler-1", ""), e(81.3, "lease", "kube-scheduler-0", ""),
		e(95, "fault-end", "kill", "1"), e(95.1, "start", "kube-scheduler-1", ""), e(97.2, "ready", "kube-scheduler-1", ""),
		e(115, "fault-begin", "pause", "2", "etcd-0"), e(116.8, "etcd-leader", "etcd-2", ""), e(140, "fault-end", "pause", "2"),
	})
}

func failoverPulse() []samples.Slot {
	var slots []samples.Slot
	for i := range 1900 {
		s := 6 + float64(i)/10
		slot := samples.Slot{Begin: at(s).UnixMilli(), Millis: 100, Requests: map[string]samples.RequestSlot{"writes": {Succeeded: 5, Slowest: .012}}}
		if s >= 115.1 && s < 117.4 {
			slot.Requests["writes"] = samples.RequestSlot{Failed: map[string]int64{"500": 3, "timeout": 2}, Slowest: 2.4}
			slot.Streams = map[string]samples.StreamSlot{"flood": {Breaks: 40, Relists: 12}}
		}
		slots = append(slots, slot)
	}
	return slots
}

func renderFailover(t *testing.T, r result.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(context.Background(), &b, r, failoverEvents(r), failoverPulse(), []byte("name: component-loss"), recording{result: r}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageShowsFaultsAndRecovery(t *testing.T) {
	got := renderFailover(t, failoverRun())
	for _, want := range []string{
		"Faults and recovery", "Requests that failed", "Relists and broken watches", "etcd leader", "kube-scheduler lease",
		"pause on etcd-0, from 1:50", ">pause on etcd-0</span>", ">to kube-scheduler-0</span>", "kube-scheduler: from kube-scheduler-1 to kube-scheduler-0", "failover 16.3 s",
		"41.7× noise", "bound 1 s; 500: 69; timeout: 46", "0 samples in the steady phases",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// The effects of faults come before the charts, right after the timeline.
	last := -1
	for _, part := range []string{`id="h-time"`, "Faults, leaders and restarts", `id="h-recovery"`, "Effects on the loads</h3>", `id="h-charts"`, `id="chart-requests-that-failed"`} {
		at := strings.Index(got, part)
		if at < last {
			t.Errorf("%s comes too early", part)
		}
		last = at
	}
	// A member's lease is a bar, not one of the numbered marks.
	if strings.Contains(got, `<span class="what">kube-scheduler-0`) {
		t.Error("a lease is among the numbered events")
	}
}

func TestRunWithoutFaultsHasNoRecovery(t *testing.T) {
	r := floodRun()
	page := render(t, r, recording{result: r})
	for _, never := range []string{"Faults and recovery", "Faults, leaders and restarts", "Effects on the loads"} {
		if strings.Contains(page, never) {
			t.Errorf("the page of a run without faults has %q", never)
		}
	}
	if got := summary(t, r, TerminalOptions{}); strings.Contains(got, "RECOVERY") || strings.Contains(got, "SIGNALS") {
		t.Error("the summary of a run without faults has a section on recovery")
	}
}

func TestSummaryListsRecovery(t *testing.T) {
	r := failoverRun()
	got := summary(t, r, TerminalOptions{})
	for _, want := range []string{"RECOVERY", "kill on kube-scheduler-1", "pause on etcd-0", "2.3 s", "16.3 s", "SIGNALS", "41.7× noise", "NO DATA"} {
		if !strings.Contains(got, want) {
			t.Errorf("the summary lacks %q:\n%s", want, got)
		}
	}
	for _, width := range []int{72, 100, 120} {
		for _, l := range strings.Split(summary(t, r, TerminalOptions{Width: width}), "\n") {
			if terminal.TextWidth(l) > width {
				t.Errorf("width %d: %d columns: %s", width, terminal.TextWidth(l), l)
			}
		}
	}
}

func TestManyFaultsStayReadable(t *testing.T) {
	r := failoverRun()
	var timeline []result.Event
	for i := range 20 {
		from := at(20 + 8*float64(i))
		timeline = append(timeline,
			result.Event{Time: from, Kind: "fault-begin", Name: "kill", Fault: string(rune('a' + i)), On: []string{"etcd-1"}},
			result.Event{Time: from.Add(4 * time.Second), Kind: "fault-end", Name: "kill", Fault: string(rune('a' + i))})
	}
	r.Recovery = recovery.Analyse(&rundir.Recorded{Timeline: timeline, Slots: failoverPulse(), Measurements: r.Measurements})
	got := summary(t, r, TerminalOptions{})
	if !strings.Contains(got, "15 more rows in the report") {
		t.Errorf("20 kills are not shortened:\n%s", got)
	}
	p := newPage(context.Background(), r, timeline, failoverPulse(), nil, nil)
	if len(p.Tracks) != 1 || p.Tracks[0].Rows != 1 || len(p.Tracks[0].Bars) != 20 {
		t.Errorf("tracks are %+v, want one row of 20 bars", p.Tracks)
	}
}

// Unknown figures are shown differently from zero.
func TestUnknownLoadFiguresAreNotZero(t *testing.T) {
	three := 3.0
	for _, c := range []struct {
		load         result.LoadRecovery
		window, back string
	}{
		{result.LoadRecovery{}, "none", chart.None},
		{result.LoadRecovery{Back: new(float64)}, "none", chart.None}, // the load never left its bound
		{result.LoadRecovery{Silent: true}, "not known", chart.None},
		{result.LoadRecovery{Affected: true, ErrorWindow: 2, Back: &three}, "2 s", "3 s"},
		{result.LoadRecovery{Affected: true, ErrorWindow: 2, Open: true, BackAtLeast: &three}, "≥ 2 s", "≥ 3 s"},
	} {
		if w, b := windowText(c.load), backText(c.load); w != c.window || b != c.back {
			t.Errorf("%+v: errors for %q and back inside %q, want %q and %q", c.load, w, b, c.window, c.back)
		}
	}
}

func TestLeaseWithoutSuccessorIsReported(t *testing.T) {
	r := failoverRun()
	r.Recovery.Faults[0].LeaseFailover, r.Recovery.Faults[0].Leaderless = nil, []string{"kube-scheduler"}
	if got := summary(t, r, TerminalOptions{}); !strings.Contains(got, "no successor") || strings.Contains(got, "16.3 s") {
		t.Errorf("the summary does not show the lost leader:\n%s", got)
	}
	table := faultTable(*r.Recovery, chart.Grid{})
	if lease, leader := table.Rows[0][8], table.Rows[0][9]; lease != "no successor" || leader != chart.None {
		t.Errorf("the table says %q and %q", lease, leader)
	}
}

// A window without a failed request is not called an error window.
func TestWindowSaysWhatItWas(t *testing.T) {
	r := failoverRun()
	for i := range r.Recovery.Faults {
		for j := range r.Recovery.Faults[i].Loads {
			l := &r.Recovery.Faults[i].Loads[j]
			l.Affected, l.Failed, l.Unsent, l.SlowSlots, l.Slowest, l.Bound, l.ErrorWindow, l.Open = true, 0, 0, 80, 2, 1, 8.4, true
		}
	}
	for _, width := range []int{72, 100} {
		recovery := summary(t, r, TerminalOptions{Width: width})
		recovery = recovery[strings.Index(recovery, "RECOVERY"):strings.Index(recovery, "SIGNALS")]
		if !strings.Contains(recovery, "≥ 8.4 s") || !strings.Contains(recovery, "slow") || strings.Contains(recovery, "error") || strings.Contains(recovery, "both") {
			t.Errorf("width %d: nothing failed, and the window is\n%s", width, recovery)
		}
	}
	for want, l := range map[string]result.LoadRecovery{
		"slow":         {Affected: true, SlowSlots: 3},
		"errors":       {Affected: true, Failed: 1, Bound: 1, Slowest: 0.5},
		"errors, slow": {Affected: true, Failed: 1, Bound: 1, Slowest: 2},
		"unsent":       {Affected: true, Unsent: 1, Bound: 1},
		"":             {Slowest: 2, Bound: 1},
	} {
		if got := outsideBy(l); got != want {
			t.Errorf("%+v: by %q, want %q", l, got, want)
		}
	}
	page := loadRecoveryTable(*r.Recovery)
	for _, row := range page.Rows {
		if row[3] != "slow" {
			t.Errorf("the page calls it %q", row[3])
		}
	}
}
