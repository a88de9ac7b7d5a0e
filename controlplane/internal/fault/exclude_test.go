package fault

import (
	"testing"
	"testing/synctest"
	"time"
)

// A restore cannot run together with any fault.
func TestRestoreExcludesFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, pauseOf("etcd-0", 0))
		const inForce = "faults are active: pause of etcd-0 (fault 1) (end them first: controlplane fault clear)"
		if _, err := m.Exclude("etcd is being restored"); err == nil || err.Error() != inForce {
			t.Errorf("Exclude with an active fault = %v, want %s", err, inForce)
		}
		if _, err := m.Clear(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		release, err := m.Exclude("etcd is being restored")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Exclude("etcd is being restored"); err == nil || err.Error() != "etcd is being restored" {
			t.Errorf("second Exclude = %v, want the reason of the first", err)
		}
		const refused = "pause cannot begin: etcd is being restored"
		if err := m.Check(t.Context(), pauseOf("etcd-0", 0)); err == nil || err.Error() != refused {
			t.Errorf("Check = %v, want %s", err, refused)
		}
		if _, err := m.Begin(t.Context(), pauseOf("etcd-0", 0)); err == nil || err.Error() != refused {
			t.Errorf("Begin = %v, want %s", err, refused)
		}
		release()
		begin(t, m, pauseOf("etcd-0", 0))
		same(t, "what was done", h.lines(), "0s continue etcd-0", "0s stop etcd-0", "0s stop etcd-0")
	})
}

// Renew may run while another fault begins. The race detector checks this.
func TestRenewDuringBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, begun := beginSlowQuota(t)
		time.Sleep(5 * time.Second)
		m.Renew(t.Context(), "etcd-0")
		if err := <-begun; err != nil {
			t.Error(err)
		}
	})
}
