package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// stopping reads the base scenario with conditions of abortOn.
func stopping(t *testing.T, conditions string) []*Stop {
	t.Helper()
	text := base + "  - {name: disk, objective: wal-fsync, max: 5ms, over: [storm]}\n  - {name: quiet, alert: EtcdWALFsyncSlow, fires: false, over: [storm]}\nabortOn: " + conditions + "\n"
	s, err := scenario.Parse("lab.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	stops, err := Stops(plan.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	return stops
}

// slowDisk records a minute of calm and two minutes of storm in which etcd-1 is slow, and evaluates a condition after
// each scrape. It returns the time in the storm at which the condition first held, and the reason.
func slowDisk(t *testing.T, conditions string) (after time.Duration, why string) {
	t.Helper()
	stop := stopping(t, conditions)[0]
	l := newLab(t, scrape.Options{})
	live := archive.Evaluating(l.Recorder().Live())
	phase := func(name string, length time.Duration, slow float64) bool {
		start := l.Boundary(time.Second)
		for at := time.Duration(0); at < length; at += 5 * time.Second {
			l.Parts["etcd-0"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.002, 50)
			l.Parts["etcd-1"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.002+slow, 50)
			now := l.Boundary(5 * time.Second)
			held, err := stop.Holds(t.Context(), live, name, start, now)
			if err != nil {
				t.Fatal(err)
			}
			if held != "" {
				after, why = now.Sub(start), held
				return true
			}
		}
		return false
	}
	if phase("calm", time.Minute, 0) {
		t.Errorf("%s held in the calm: %s", conditions, why)
	}
	phase("storm", 2*time.Minute, 0.010)
	return after, why
}

func TestConditionsEndARunWhenTheyHold(t *testing.T) {
	for conditions, want := range map[string]struct {
		after time.Duration
		why   string
	}{
		"[{gate: disk}]":           {5 * time.Second, "abortOn: gate disk in phase storm, 5 s after its start: 15.9 ms is over 5 ms (etcd-1)"},
		"[{gate: disk, for: 20s}]": {25 * time.Second, "ms is over 5 ms (etcd-1), for 20 s"},
		"[{expr: 'sum(increase(etcd_disk_wal_fsync_duration_seconds_count[$window]))', max: 550, over: [storm]}]": {30 * time.Second, "600 is over 550"},
		"[{expr: 'sum(increase(etcd_disk_wal_fsync_duration_seconds_count[$window]))', min: 0, over: [storm]}]":   {},
		"[{expr: 'max(no_such_metric_at_all)', max: 1}]":                                                          {},
		"[{alert: EtcdWALFsyncVerySlow}]":                                                                         {},
		"[{gate: disk, for: 10m}]":                                                                                {},
	} {
		after, why := slowDisk(t, conditions)
		if after != want.after || !strings.Contains(why, want.why) || (want.why == "") != (why == "") {
			t.Errorf("%s: after %s: %q, want after %s: %q", conditions, after, why, want.after, want.why)
		}
	}
}

func TestAlertEndsARunWhenItFires(t *testing.T) {
	after, why := slowDisk(t, "[{alert: EtcdWALFsyncSlow, over: [storm]}]")
	if after < time.Minute || !strings.Contains(why, "abortOn: alert EtcdWALFsyncSlow in phase storm, ") || !strings.Contains(why, "it fires (WAL fsync of etcd-1 is slow") {
		t.Errorf("after %s: %q", after, why)
	}
	later, why := slowDisk(t, "[{gate: quiet, for: 20s}]")
	if later < after+20*time.Second || !strings.Contains(why, "gate quiet") {
		t.Errorf("after %s: %q", later, why)
	}
}

// A condition without data says so, and does not hold.
func TestConditionWithoutDataIsBlind(t *testing.T) {
	stop := stopping(t, "[{expr: 'max(no_such_metric_at_all)', max: 1}, {expr: 'max(up)', max: 5}]")
	l := archivetest.New(t, scrape.Options{}, "etcd-0")
	start := l.Boundary(0)
	for i, want := range []string{"the expression returns no value", ""} {
		why, err := stop[i].Holds(t.Context(), archive.Evaluating(l.Recorder().Live()), "storm", start, l.Boundary(5*time.Second))
		if err != nil || why != "" || stop[i].Blind != want {
			t.Errorf("%q, %v, blind: %q, want %q", why, err, stop[i].Blind, want)
		}
	}
}
