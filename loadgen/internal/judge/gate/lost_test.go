package gate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A run does not pass if a process ended under a fault that does not account for its
// exit.
func TestUnexpectedExitDoesNotPass(t *testing.T) {
	gates := compiled(t, "{name: good, objective: generator-memory, max: 1GB}")
	m := told()
	storm := m.Phases[1]
	at := storm.Start.Add(storm.End.Sub(storm.Start) / 2).UTC()
	exit := result.Event{Time: at, Kind: "exit", Name: "kube-apiserver-0", Detail: "exited with code 2"}
	line := "kube-apiserver-0 at " + at.Format("15:04:05.0") + " in storm: exited with code 2"
	begin := func(kind string, on ...string) result.Event {
		return result.Event{Time: storm.Start, Kind: "fault-begin", Name: kind, Fault: "1", On: on}
	}
	asked := exit
	asked.Expected = true
	for name, c := range map[string]struct {
		timeline []result.Event
		want     result.Verdict
	}{
		"a panic under a webhook":          {[]result.Event{begin("webhook"), exit}, result.NoData},
		"a panic under a kill of another":  {[]result.Event{begin("kill", "kube-apiserver-1"), exit}, result.NoData},
		"the kill itself":                  {[]result.Event{begin("kill", "kube-apiserver-0"), asked}, result.Pass},
		"too few descriptors, and it ends": {[]result.Event{begin("descriptorLimit", "kube-apiserver-0"), exit}, result.Pass},
	} {
		res, err := Judge(t.Context(), gates, &rundir.Recorded{Measurements: m, Timeline: c.timeline})
		if err != nil {
			t.Fatal(err)
		}
		if res.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %q", name, res.Verdict, c.want, res.Reasons)
		}
		if said := slices.Contains(res.Reasons, "unexpected exit: "+line) && slices.Equal(res.Run.UnexpectedExits, []string{line}); said != (c.want == result.NoData) {
			t.Errorf("%s: the exits are %q, the reasons %q", name, res.Run.UnexpectedExits, res.Reasons)
		}
	}
}

// Scrapes do not use the links that a fault delays or cuts, so such a fault excuses no
// lost scrape.
func TestExcusedLostScrapes(t *testing.T) {
	for _, c := range []struct {
		kind, on, of string
		excused      bool
	}{
		{"kill", "kube-apiserver-0", "kube-apiserver-0", true}, {"pause", "etcd-0", "etcd-0", true},
		{"networkDelay", "kube-apiserver-0", "kube-apiserver-0", false}, {"networkDelay", "etcd-0", "etcd-0", false},
		{"partition", "kube-apiserver-0", "kube-apiserver-0", false}, {"slowFsync", "etcd-0", "etcd-0", false},
		{"kill", "kube-apiserver-1", "kube-apiserver-0", false}, {"pause", "etcd-0", "kube-apiserver-0", false},
	} {
		rec := awayLab(t, c.kind, 40, c.of)
		for i := range rec.Timeline {
			e := &rec.Timeline[i]
			e.On = slices.Clone(e.On)
			for j := range e.On {
				e.On[j] = c.on
			}
			e.Name = strings.ReplaceAll(e.Name, c.of, c.on)
		}
		rec.Measurements.Scrapes = result.Scrapes{Done: 60, Failed: map[string]int64{c.of: 2}}
		res, err := Judge(t.Context(), compiled(t, "{name: good, objective: phase-duration, max: 1h, over: [storm]}"), rec)
		if err != nil {
			t.Fatal(err)
		}
		lost := slices.ContainsFunc(res.Reasons, func(s string) bool { return strings.Contains(s, "2 of 60 scrapes were lost: "+c.of) })
		if lost == c.excused || (res.Verdict == result.Pass) != c.excused {
			t.Errorf("%s of %s, scrape of %s: %s, %q; excused: %v", c.kind, c.on, c.of, res.Verdict, res.Reasons, c.excused)
		}
	}
}

// A single lost scrape costs one sample. At the edge of a phase the counts from there to
// the next scrape are missing.
func TestOneLostScrapeIsOneSample(t *testing.T) {
	for name, c := range map[string]struct {
		lost int // of the scrapes of the phase, the first is 0
		said string
	}{
		"in the phase": {3, "scrapes of etcd-1 lost in storm: 1, no two in a row"},
		"at its start": {0, "the counts of etcd-1 cover 50 s of 60 s (lost scrape)"},
		"at its end":   {6, "the counts of etcd-1 cover 50 s of 60 s (lost scrape)"},
	} {
		l := newLab(t, scrape.Options{})
		scrape := func(i int) time.Time {
			l.Parts["etcd-1"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.001, 10)
			l.Parts["etcd-1"].SetDown(i == c.lost)
			return l.Boundary(10 * time.Second)
		}
		scrape(-1)
		p := result.Phase{Name: "storm", Start: scrape(0), ConditionMet: true}
		for i := 1; i < 6; i++ {
			scrape(i)
		}
		p.End = scrape(6)
		scrape(7)
		rec := &rundir.Recorded{Archive: l.Archive(), Measurements: result.Measurements{Phases: []result.Phase{p}, Scrapes: result.Scrapes{Done: 60, Failed: map[string]int64{"etcd-1": 1}}}}
		res, err := Judge(t.Context(), compiled(t, "{name: fsync, objective: wal-fsync, max: 10ms, over: [storm]}"), rec)
		if err != nil {
			t.Fatal(err)
		}
		if g := res.Gates[0]; res.Verdict != result.Pass || !strings.Contains(g.Detail, c.said) {
			t.Errorf("%s: %s %q, gate %s %q; want a pass with %q", name, res.Verdict, res.Reasons, g.Verdict, g.Detail, c.said)
		}
	}
}
