package fault

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// A component may end by itself during a fault, and may not be started again when the fault's duration is over. Then
// there is nothing to undo and nothing to clear.
func TestUndoIgnoresEndedProcess(t *testing.T) {
	notRunning := fmt.Errorf("kube-apiserver-0 %w: it exited with code 1", ErrNotRunning)
	limit := control.Fault{Kind: control.FaultDescriptors, Components: []string{"kube-apiserver-0"}, Limit: 100, For: time.Second}
	for _, test := range []struct {
		fault control.Fault
		undo  string
		err   error
	}{
		{slowOf("etcd-0", time.Second), "swift etcd-0", notRunning},
		{limit, "limit kube-apiserver-0 65536", notRunning},
		{limit, "limit kube-apiserver-0 65536", fmt.Errorf("set the limit: %w", syscall.ESRCH)},
		{pauseOf("etcd-0", time.Second), "continue etcd-0", notRunning},
	} {
		t.Run(test.fault.Kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, h := fixture(t)
				begin(t, m, test.fault)
				h.breaks(test.undo, test.err)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if s := m.List()[0]; s.Error != "" || !s.Ended.Equal(s.Ends) {
					t.Errorf("status = %+v, want a fault that ended on time", s)
				}
			})
		})
	}
}

// If the neighbour ends by itself, there is no contention any more, so its fault is lost.
func TestFaultIsLostWhenNeighbourEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, control.Fault{Kind: control.FaultDiskContention, For: time.Minute})
		time.Sleep(time.Second)
		h.lost(errors.New("disk-neighbour exited with code 4: no space left on device"))
		time.Sleep(time.Hour)
		h.lost(errors.New("too late to matter"))
		if s := m.List()[0]; s.Lost != "disk-neighbour exited with code 4: no space left on device" || s.Error != "" || s.Ended.IsZero() {
			t.Errorf("status = %+v, want an ended fault with the first reason in Lost", s)
		}
		same(t, "events", told(m), "1 fault-begin : fault 1: diskContention",
			"2 fault-end : fault 1: diskContention is lost: disk-neighbour exited with code 4: no space left on device",
			"3 fault-end : fault 1: diskContention")
	})
}

// A descriptor limit must be below the current limit of the process; otherwise it has no effect.
func TestDescriptorLimitMustLowerCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		_, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultDescriptors, Components: []string{"etcd-0"}, Limit: 65536})
		if err == nil || err.Error() != "descriptorLimit cannot begin: the limit of open files of etcd-0 is 65536, so the fault's limit of 65536 would not lower it" {
			t.Errorf("Begin = %v, want an error about the current limit", err)
		}
		if len(inForce(m)) > 0 {
			t.Errorf("faults that have not ended: %v", inForce(m))
		}
		same(t, "what was done", h.lines(), "0s limit etcd-0 65536", "0s limit etcd-0 65536")
	})
}
