package fault

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// A component is down for as long as its process takes to end, and restarts immediately.
func TestRestartEndsWhenProcessIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.stopping = 3 * time.Second
		s := begin(t, m, control.Fault{Kind: control.FaultRestart, Components: []string{"kube-apiserver-1"}})
		if !s.Active.Equal(s.Asked) {
			t.Error("the fault is not active immediately")
		}
		time.Sleep(time.Second)
		if _, err := m.Begin(t.Context(), pauseOf("kube-apiserver-1", time.Second)); err == nil {
			t.Error("Begin accepts a pause of a process that is ending")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		same(t, "what was done", h.lines(), "0s end kube-apiserver-1", "3s start kube-apiserver-1")
		if s := m.List()[0]; !s.Ended.Equal(s.Active.Add(3 * time.Second)) {
			t.Errorf("the fault ended after %v, want 3s", s.Ended.Sub(s.Active))
		}
	})
}

// A kind is restarted as in a rollout: the next one's turn comes when the one before it
// serves again.
func TestRolloutRestartsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.stopping, h.starting = 3*time.Second, 4*time.Second
		s := begin(t, m, control.Fault{Kind: control.FaultRestart, Components: []string{"etcd"}})
		time.Sleep(time.Second)
		if s, err := m.Clear(t.Context(), s.ID); err != nil || !s.Ended.Equal(s.Active.Add(17*time.Second)) { // it is waited for
			t.Errorf("%+v, %v", s, err)
		}
		same(t, "what was done", h.lines(),
			"0s end etcd-0", "3s start etcd-0", "7s end etcd-1", "10s start etcd-1", "14s end etcd-2",
			"17s start etcd-2")
	})
}

// A rollout that cannot continue is reported as lost: it has not restarted all.
func TestInterruptedRolloutIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.starting = time.Hour
		rollout := control.Fault{Kind: control.FaultRestart, Components: []string{"kube-apiserver"}}
		begin(t, m, rollout)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := m.List()[0]; s.Lost != "kube-apiserver-1 was not restarted: context deadline exceeded" || s.Ended.IsZero() || s.Error != "" {
			t.Errorf("%+v", s)
		}
		begin(t, m, rollout)
		if err := m.Close(t.Context()); err != nil { // it does not wait for an hour
			t.Error(err)
		}
		if s := m.List()[1]; s.Lost != "kube-apiserver-1 was not restarted: the control plane is stopping" {
			t.Errorf("%+v", s)
		}
	})
}

// A component whose end or start failed is started anyway, and the fault is reported as
// lost.
func TestFailedRestartStartsComponentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("start etcd-0", errors.New("the port is taken"))
		begin(t, m, control.Fault{Kind: control.FaultRestart, Components: []string{"etcd-0", "etcd-1"}})
		synctest.Wait()
		if s := m.List()[0]; s.Lost != "the port is taken" || s.Error != "the port is taken" || !s.Ended.IsZero() {
			t.Errorf("%+v", s)
		}
		h.breaks("start etcd-0", nil)
		if s, err := m.Clear(t.Context(), "1"); err != nil || s.Ended.IsZero() {
			t.Errorf("clear: %+v, %v", s, err)
		}
		same(t, "what was done", h.lines(), "0s end etcd-0", "0s start etcd-0")
	})
}
