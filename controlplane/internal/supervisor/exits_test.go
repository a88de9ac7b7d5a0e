package supervisor

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
)

func TestBackoffMatchesKubelet(t *testing.T) {
	for crashes, want := range map[int]time.Duration{
		1: 0, 2: 10 * time.Second, 3: 20 * time.Second, 4: 40 * time.Second, 7: 5 * time.Minute, 100: 5 * time.Minute,
	} {
		if got := backoff(crashes); got != want {
			t.Errorf("after %d ends in a row it waits %v, want %v", crashes, got, want)
		}
	}
}

// TestExitUnderFault: an exit while a fault is in force, or soon after.
func TestExitUnderFault(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	ended := func(before time.Duration) control.FaultStatus { return control.FaultStatus{Ended: now.Add(-before)} }
	for _, c := range []struct {
		faults  []control.FaultStatus
		revived time.Time
		want    bool
	}{
		{nil, time.Time{}, false},
		{[]control.FaultStatus{ended(time.Hour), {}}, time.Time{}, true},
		{[]control.FaultStatus{ended(time.Hour), ended(20 * time.Second)}, time.Time{}, true},
		{[]control.FaultStatus{ended(time.Minute)}, time.Time{}, false},
		// It crashed under the fault again and again, and its back-off outlasted that.
		{[]control.FaultStatus{ended(160 * time.Second)}, now.Add(-20 * time.Second), true},
		{[]control.FaultStatus{ended(160 * time.Second)}, now.Add(-time.Minute), false},
	} {
		if got := underFault(c.faults, c.revived, now); got != c.want {
			t.Errorf("%+v, revived %v: %v", c.faults, c.revived, got)
		}
	}
}

// An exit that the kernel's OOM killer may have caused says so.
func TestExitOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		exit     process.Exit
		oomKills uint64
		want     string
	}{
		{process.Exit{Code: -1, Signal: "killed"}, 0, "ended by signal killed"},
		{process.Exit{Code: -1, Signal: "killed"}, 2, "ended by signal killed (the machine ran out of memory: its kernel has killed 2 since this process was started)"},
		{process.Exit{Code: -1, Signal: "terminated"}, 2, "ended by signal terminated"},
		{process.Exit{Code: 2}, 2, "exited with code 2"},
	} {
		if got := ending(c.exit, c.oomKills); got != c.want {
			t.Errorf("%+v, %d: %s", c.exit, c.oomKills, got)
		}
	}
}
