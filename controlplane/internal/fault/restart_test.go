package fault

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// A restarted component is down until its process has ended, and then starts immediately.
func TestRestartEndsWhenProcessIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.stopping = 3 * time.Second
		s := begin(t, m, control.Fault{Kind: control.FaultRestart, Components: []string{"kube-apiserver-1"}})
		if !s.Active.Equal(s.Asked) {
			t.Error("the restart is not active immediately")
		}
		time.Sleep(time.Second)
		if _, err := m.Begin(t.Context(), pauseOf("kube-apiserver-1", time.Second)); err == nil {
			t.Error("a process that is ending was paused")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		same(t, "what was done", h.lines(), "0s end kube-apiserver-1", "3s start kube-apiserver-1")
		if s := m.List()[0]; !s.Ended.Equal(s.Active.Add(3 * time.Second)) {
			t.Errorf("the restart ended %v after it began, want 3s", s.Ended.Sub(s.Active))
		}
	})
}

// A fault on a kind restarts its components as in a rollout: each component restarts when the previous one serves
// again.
func TestRolloutRestartsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.stopping, h.starting = 3*time.Second, 4*time.Second
		s := begin(t, m, control.Fault{Kind: control.FaultRestart, Components: []string{"etcd"}})
		time.Sleep(time.Second)
		if s, err := m.Clear(t.Context(), s.ID); err != nil || !s.Ended.Equal(s.Active.Add(17*time.Second)) { // Clear waits for the rollout
			t.Errorf("Clear = %+v, %v; want an end after 17s", s, err)
		}
		same(t, "what was done", h.lines(),
			"0s end etcd-0", "3s start etcd-0", "7s end etcd-1", "10s start etcd-1", "14s end etcd-2",
			"17s start etcd-2")
	})
}

// A rollout that cannot continue is reported as a lost fault, because it has not restarted all components.
func TestInterruptedRolloutIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.starting = time.Hour
		rollout := control.Fault{Kind: control.FaultRestart, Components: []string{"kube-apiserver"}}
		begin(t, m, rollout)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := m.List()[0]; s.Lost != "kube-apiserver-1 was not restarted: context deadline exceeded" || s.Ended.IsZero() || s.Error != "" {
			t.Errorf("status = %+v, want a lost fault that has ended", s)
		}
		begin(t, m, rollout)
		if err := m.Close(t.Context()); err != nil { // Close does not wait for an hour
			t.Error(err)
		}
		if s := m.List()[1]; s.Lost != "kube-apiserver-1 was not restarted: the control plane is stopping" {
			t.Errorf("status after Close = %+v, want a fault that Close ended", s)
		}
	})
}

// If the end or the start of a component fails, undoing the fault starts the component, and the fault is lost.
func TestFailedRestartStartsComponentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("start etcd-0", errors.New("the port is taken"))
		begin(t, m, control.Fault{Kind: control.FaultRestart, Components: []string{"etcd-0", "etcd-1"}})
		synctest.Wait()
		if s := m.List()[0]; s.Lost != "the port is taken" || s.Error != "the port is taken" || !s.Ended.IsZero() {
			t.Errorf("status = %+v, want a lost fault that was not undone", s)
		}
		h.breaks("start etcd-0", nil)
		if s, err := m.Clear(t.Context(), "1"); err != nil || s.Ended.IsZero() {
			t.Errorf("Clear = %+v, %v; want an ended fault", s, err)
		}
		same(t, "what was done", h.lines(), "0s end etcd-0", "0s start etcd-0")
	})
}
