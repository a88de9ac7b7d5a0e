package controlplane

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestBackoffIsTheKubelets(t *testing.T) {
	for crashes, want := range map[int]time.Duration{
		1: 0, 2: 10 * time.Second, 3: 20 * time.Second, 4: 40 * time.Second, 7: 5 * time.Minute, 100: 5 * time.Minute,
	} {
		if got := backoff(crashes); got != want {
			t.Errorf("after %d ends in a row it waits %v, want %v", crashes, got, want)
		}
	}
}

// TestWhatAFaultMayHaveDone: an exit while a fault is in force, or soon after.
func TestWhatAFaultMayHaveDone(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	ended := func(before time.Duration) control.FaultStatus { return control.FaultStatus{Ended: now.Add(-before)} }
	for _, c := range []struct {
		faults []control.FaultStatus
		want   bool
	}{
		{nil, false},
		{[]control.FaultStatus{ended(time.Hour), {}}, true},
		{[]control.FaultStatus{ended(time.Hour), ended(20 * time.Second)}, true},
		{[]control.FaultStatus{ended(time.Minute)}, false},
	} {
		if got := underFault(c.faults, now); got != c.want {
			t.Errorf("%+v: %v", c.faults, got)
		}
	}
}
