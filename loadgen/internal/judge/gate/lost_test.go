package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A process that ended under a fault that does not account for it makes a pass
// impossible, whatever the gates say.
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

// Scrapes do not go over the links that a fault delays or cuts: one that is lost
// then is lost, of whomever.
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
		rec := awayLab(t, c.kind, 30, c.of)
		for i := range rec.Timeline {
			e := &rec.Timeline[i]
			e.On = slices.Clone(e.On)
			for j := range e.On {
				e.On[j] = c.on
			}
			e.Name = strings.ReplaceAll(e.Name, c.of, c.on)
		}
		rec.Measurements.Scrapes = result.Scrapes{Done: 60, Failed: map[string]int64{c.of: 1}}
		res, err := Judge(t.Context(), compiled(t, "{name: good, objective: phase-duration, max: 1h, over: [storm]}"), rec)
		if err != nil {
			t.Fatal(err)
		}
		lost := slices.ContainsFunc(res.Reasons, func(s string) bool { return strings.Contains(s, "1 of 60 scrapes were lost: "+c.of) })
		if lost == c.excused || (res.Verdict == result.Pass) != c.excused {
			t.Errorf("%s of %s, scrape of %s: %s, %q; excused: %v", c.kind, c.on, c.of, res.Verdict, res.Reasons, c.excused)
		}
	}
}
