package recovery

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The result distinguishes a load that did not recover from one that was not observed for long enough: it gives the
// time for which the load was certainly not back.
func TestHowLongALoadWasNotBack(t *testing.T) {
	for name, c := range map[string]struct {
		letters string // the fault lasts from 1.0 s to 2.0 s
		atLeast any
		open    bool
	}{
		"back":                   {letters: "..........xxxxxxxxxx" + strings.Repeat(".", 60)},
		"to the last":            {letters: "..........xxxxxxxxxx" + strings.Repeat("x", 60), atLeast: 6.0, open: true},
		"good again too late":    {letters: "..........xxxxxxxxxx" + strings.Repeat("x", 30) + strings.Repeat(".", 40), atLeast: 3.0},
		"good before the end":    {letters: "..........xxxxx....." + strings.Repeat(".", 30), atLeast: 0.0},
		"ended before the fault": {letters: "..........xxxxx", open: true},
	} {
		got := seen(t, faulty(1, 2), slotsOf("reads", c.letters))
		isSeconds(t, name+": certainly not back for", got.BackAtLeast, c.atLeast)
		if got.Open != c.open || got.Silent {
			t.Errorf("%s: the window is open: %v, and silent: %v", name, got.Open, got.Silent)
		}
	}
}

// If no request ended between the starts of two faults, the next failed request is attributed to the second fault. If
// no request ends after that, nothing is known.
func TestHangingLoadIsNotUnaffected(t *testing.T) {
	second := []result.Event{
		{Time: sec(3), Kind: "fault-begin", Name: "kill", Fault: "2"},
		{Time: sec(4), Kind: "fault-end", Name: "kill", Fault: "2"},
	}
	letters := "..........                        x" + strings.Repeat(".", 60)
	r := Analyse(&rundir.Recorded{Timeline: append(faulty(1, 2), second...), Slots: slotsOf("reads", letters)})
	if n := len(r.Faults[0].Loads); n != 0 {
		t.Errorf("the first fault reports %d loads, though no request ended during it", n)
	}
	if l := r.Faults[1].Loads; len(l) != 1 || !l[0].Affected || l[0].Silent {
		t.Errorf("the second fault does not answer for the request that failed under it: %+v", l)
	}
	got := seen(t, faulty(1, 2), slotsOf("reads", ".........."))
	if !got.Silent || got.Affected || got.BackAtLeast != nil {
		t.Errorf("a load without a request after the fault: %+v", got)
	}
}

// Two leaseholders are killed, and only one has a successor: the other lease has no
// holder.
func TestUnclaimedLeaseIsReported(t *testing.T) {
	r := Analyse(&rundir.Recorded{
		Measurements: phase("kills", sec(5), sec(60)),
		Timeline: append(killedScheduler(), []result.Event{
			{Time: sec(27), Kind: "fault-end", Name: "kill", Fault: "1"},
			{Time: sec(40), Kind: "fault-begin", Name: "kill", Fault: "2", On: []string{"kube-scheduler-0"}},
			{Time: sec(40.01), Kind: "exit", Name: "kube-scheduler-0"},
			{Time: sec(45), Kind: "fault-end", Name: "kill", Fault: "2"},
			{Time: sec(61), Kind: "exit", Name: "kube-controller-manager-0"}, // the plane is stopped
		}...),
	})
	if got := r.Faults[0].Leaderless; len(got) != 0 {
		t.Errorf("after the first kill %v have no leader", got)
	}
	if got := r.Faults[1].Leaderless; len(got) != 1 || got[0] != "kube-scheduler" {
		t.Errorf("after the second kill %v have no leader, want the scheduler", got)
	}
}
