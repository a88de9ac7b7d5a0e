package recovery

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// In all cases the fault lasts from 1.0 s to 2.0 s.
func TestLoadRecovery(t *testing.T) {
	well := strings.Repeat(".", 60)
	for name, c := range map[string]struct {
		letters                     string
		affected                    bool
		window                      float64
		from, until                 any
		first, firstAfterEnd, back  any
		failed, succeeded, slowSlot int64
		already                     bool
		detail                      string
	}{
		"nothing": {
			letters: "..........  ........" + well, back: 0.0,
		},
		"failed while it lasted": {
			letters: "..........xxxxxxxxxx" + well, affected: true, window: 1, from: 0.0, until: 1.0,
			first: 1.1, firstAfterEnd: 0.1, back: 0.0, failed: 10,
		},
		"failed later and longer": {
			letters: "............xxxx....xxxxx.x" + well, affected: true, window: 1.5, from: 0.2, until: 1.7,
			first: 0.7, firstAfterEnd: -0.3, back: 0.7, failed: 10, succeeded: 5,
		},
		"half of them failed": {
			letters: "..........mmmmmmmmmm" + well, affected: true, window: 1, from: 0.0, until: 1.0,
			first: 0.2, firstAfterEnd: -0.8, back: 0.0, failed: 10, succeeded: 10,
		},
		"slow, not failed": {
			letters: "............ss.s    ....ss" + well, affected: true, window: 1.4, from: 0.2, until: 1.6,
			back: 0.6, succeeded: 10, slowSlot: 5,
		},
		"no slot was free": {
			letters: "...........u........" + well, affected: true, window: 0.1, from: 0.1, until: 0.2,
			first: 0.3, firstAfterEnd: -0.7, back: 0.0, succeeded: 1,
		},
		"hung, then answered": {
			letters: "..........          " + "     sss" + well, affected: true, window: 0.3, from: 1.5, until: 1.8,
			back: 0.8, succeeded: 3, slowSlot: 3,
		},
		"failed before as well": {
			letters: ".....x....xx........" + well, affected: true, window: 0.2, from: 0.0, until: 0.2,
			first: 0.3, firstAfterEnd: -0.7, back: 0.0, failed: 2, already: true,
		},
		"failed again long after": {
			letters: "..........xx........" + well + "xxx" + well, affected: true, window: 0.2, from: 0.0, until: 0.2,
			first: 0.3, firstAfterEnd: -0.7, back: 0.0, failed: 2,
		},
		"failed again too soon": {
			letters: "..........xx........" + well[:40] + "x" + well, affected: true, window: 5.1, from: 0.0, until: 5.1,
			first: 0.3, firstAfterEnd: -0.7, back: 4.1, failed: 3, succeeded: 48,
		},
		"never came back": {
			letters: "..........xxxxxxxxxx" + strings.Repeat("x", 60), affected: true, window: 7, from: 0.0, until: 7.0,
			failed: 70, detail: "outside its bound until the end",
		},
		"ended too early to tell": {
			letters: "..........xxxxxxxxxxxx" + well[:30], affected: true, window: 1.2, from: 0.0, until: 1.2,
			first: 1.3, firstAfterEnd: 0.3, failed: 12, detail: "been within its bound for only 3.0 s when the load ended",
		},
		"ended before the fault": {
			letters: "..........xxxxx", affected: true, window: 0.5, from: 0.0, until: 0.5,
			failed: 5, detail: "the load ended before the fault ended",
		},
		"given up at the run's end": {
			letters: "..........xx........" + well + "ccc", affected: true, window: 0.2, from: 0.0, until: 0.2,
			first: 0.3, firstAfterEnd: -0.7, back: 0.0, failed: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := seen(t, faulty(1, 2), slotsOf("reads", c.letters))
			if got.Affected != c.affected || got.AlreadyFailing != c.already {
				t.Errorf("affected is %v and already failing %v, want %v and %v", got.Affected, got.AlreadyFailing, c.affected, c.already)
			}
			isSeconds(t, "the error window", &got.ErrorWindow, c.window)
			isSeconds(t, "its begin", got.From, c.from)
			isSeconds(t, "its end", got.Until, c.until)
			isSeconds(t, "the first success", got.FirstSuccess, c.first)
			isSeconds(t, "the first success after the end", got.FirstSuccessAfterEnd, c.firstAfterEnd)
			isSeconds(t, "the time back inside the bound", got.Back, c.back)
			if got.Failed != c.failed || got.Succeeded != c.succeeded || got.SlowSlots != c.slowSlot {
				t.Errorf("%d failed, %d succeeded, %d slow slots; want %d, %d, %d", got.Failed, got.Succeeded, got.SlowSlots, c.failed, c.succeeded, c.slowSlot)
			}
			if !strings.Contains(got.Detail, c.detail) || c.detail == "" && got.Detail != "" {
				t.Errorf("detail is %q, want %q in it", got.Detail, c.detail)
			}
		})
	}
}

func TestBoundIsOfTheLoad(t *testing.T) {
	in := &rundir.Recorded{Timeline: faulty(1, 2), Slots: slotsOf("lists", "..........sssss....."+strings.Repeat(".", 60)),
		Scenario: &scenario.Scenario{Background: []scenario.Load{{Name: "lists", Kind: "requests", Operation: scenario.Operation{Verb: "list"}}}}}
	got := Analyse(in).Faults[0].Loads[0]
	if got.Affected || got.Bound != 30 {
		t.Errorf("with a bound of 30 s, answers after 3 s count: %+v", got)
	}
}

// Three kills, two seconds apart: effects after a kill are not attributed to the
// previous one.
func TestFaultWindowEndsAtNextFault(t *testing.T) {
	var timeline []result.Event
	for i, at := range []float64{1, 3, 5} {
		id := string(rune('1' + i))
		timeline = append(timeline,
			result.Event{Time: sec(at), Kind: "fault-begin", Name: "kill", Fault: id},
			result.Event{Time: sec(at + 1), Kind: "fault-end", Name: "kill", Fault: id})
	}
	slots := slotsOf("reads", "..........xxxxx.....x..................................................................................................")
	r := Analyse(&rundir.Recorded{Timeline: timeline, Slots: slots})
	if len(r.Faults) != 3 {
		t.Fatalf("%d faults, want 3", len(r.Faults))
	}
	first, second, third := r.Faults[0].Loads[0], r.Faults[1].Loads[0], r.Faults[2].Loads[0]
	if first.ErrorWindow != 1.1 || !strings.Contains(first.Detail, "the next fault began") || first.Back != nil {
		t.Errorf("the first fault: %+v", first)
	}
	if second.Affected || !second.AlreadyFailing {
		t.Errorf("the second fault: %+v", second)
	}
	if third.Affected || third.Back == nil || *third.Back != 0 {
		t.Errorf("the third fault: %+v", third)
	}
}

func TestOverlappingFaultsEndSeparately(t *testing.T) {
	r := Analyse(&rundir.Recorded{Timeline: []result.Event{
		{Time: sec(5), Kind: "fault-end", Name: "slowFsync", Fault: "1"}, // written late
		{Time: sec(1), Kind: "fault-begin", Name: "slowFsync", Fault: "1", On: []string{"etcd-0"}},
		{Time: sec(2), Kind: "fault-begin", Name: "pause", Fault: "2"},
		{Time: sec(3), Kind: "fault-end", Name: "pause", Fault: "2"},
		{Time: sec(7), Kind: "fault-begin", Name: "partition", Fault: "3"},
	}, Measurements: phase("storm", sec(0), sec(6))})
	if !r.Faults[0].End.Equal(sec(5)) || !r.Faults[1].End.Equal(sec(3)) || r.Faults[2].End != nil {
		t.Errorf("ends of the faults = %v, %v and %v", r.Faults[0].End, r.Faults[1].End, r.Faults[2].End)
	}
	if r.Faults[0].Phase != "storm" || r.Faults[2].Phase != "" {
		t.Errorf("phases of the faults = %q and %q", r.Faults[0].Phase, r.Faults[2].Phase)
	}
	if len(r.Missing) != 1 {
		t.Errorf("Missing = %v, want one line about the missing pulse", r.Missing)
	}
}

func TestNodesAreFaultyUntilTheyRecover(t *testing.T) {
	r := Analyse(&rundir.Recorded{Timeline: []result.Event{
		{Time: sec(1), Kind: "fault", Name: "nodeFailure", Detail: "10 of 100 nodes stop"},
		{Time: sec(9), Kind: "fault", Name: "nodeRecovery"},
	}})
	if len(r.Faults) != 1 || r.Faults[0].Kind != "nodeFailure" || !r.Faults[0].End.Equal(sec(9)) {
		t.Errorf("faults = %+v", r.Faults)
	}
}

func TestLaterLoadIsNotJudged(t *testing.T) {
	slots := append(slotsOf("before", strings.Repeat(".", 80)), slotsOf("after", strings.Repeat(" ", 72)+"xx...")...)
	slices.SortStableFunc(slots, func(x, y samples.Slot) int { return int(x.Begin - y.Begin) })
	if got := seen(t, faulty(1, 2), slots); got.Load != "before" {
		t.Errorf("judged load = %s, want before", got.Load)
	}
}

func TestNoRecoveryWithoutFaults(t *testing.T) {
	in := &rundir.Recorded{Timeline: []result.Event{
		{Time: sec(0), Kind: "phase-start", Name: "storm"},
		{Time: sec(0), Kind: "lease", Name: "kube-scheduler-0"},
		{Time: sec(9), Kind: "phase-end", Name: "storm"},
	}, Slots: slotsOf("reads", "...xxx...")}
	if r := Analyse(in); r != nil {
		t.Errorf("without a fault there is a recovery: %+v", r)
	}
}
