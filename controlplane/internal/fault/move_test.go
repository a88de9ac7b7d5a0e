package fault

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// An upgrade restarts components in upstream's order, etcd's leader as the last member. Each restarts when the previous
// one serves.
func TestUpgradeMovesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.version, h.starting = "1.36", time.Second
		begin(t, m, control.Fault{Kind: control.FaultUpgrade, To: "1.37"})
		time.Sleep(time.Minute)
		synctest.Wait()
		var order []string
		for _, line := range h.lines() {
			if words := strings.Fields(line); words[1] == "move" {
				order = append(order, words[0]+" "+words[2])
			}
		}
		same(t, "what was moved", order, "0s etcd-0", "1s etcd-2", "2s etcd-1", "3s kube-apiserver-0", "4s kube-apiserver-1",
			"5s kube-controller-manager-0", "6s kube-controller-manager-1", "7s kube-scheduler-0", "8s kube-scheduler-1")
		if s := m.List()[0]; s.Lost != "" || s.Ended.IsZero() {
			t.Errorf("status = %+v, want an ended fault", s)
		}
	})
}

// Before the first member is downgraded, etcd's data gets the older storage version.
func TestDowngradeOfEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.answers["/v3/maintenance/status"] = `{"version": "3.7.0", "storageVersion": "3.6.0"}`
		begin(t, m, control.Fault{Kind: control.FaultDowngrade, To: "1.36", Components: []string{"etcd"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		told, ended := h.first("/v3/maintenance/downgrade"), h.first(" end etcd")
		if told < 0 || ended < told {
			t.Errorf("the downgrade request was step %d, and the end of a member step %d", told, ended)
		}
		if c := h.Config(); c.ReleaseOf("etcd-0").Etcd != "3.6.14" || c.ReleaseOf("kube-apiserver-0").Minor != "1.37" {
			t.Errorf("versions = %v, want 1.36 only for etcd", c.Versions)
		}
	})
}

// If the data keeps the newer storage version, the downgrade restarts no member.
func TestDowngradeOfEtcdThatKeepsItsForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.answers["/v3/maintenance/status"] = `{"storageVersion": "3.7.0"}`
		begin(t, m, control.Fault{Kind: control.FaultDowngrade, To: "1.36", Components: []string{"etcd"}})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := m.List()[0]; !strings.Contains(s.Lost, "etcd did not reach storage version 3.6 within 1m0s: etcd-0 has storage version 3.7.0\nthese components were not changed to version 1.36: etcd-0, etcd-2, etcd-1") || s.Ended.IsZero() {
			t.Errorf("status = %+v, want a lost fault", s)
		}
		if h.first(" end etcd") >= 0 || h.first(`{"action":"CANCEL"`) < 0 {
			t.Errorf("steps = %q, want a canceled downgrade and no stopped member", h.lines())
		}
	})
}

// A cluster in which some members have the older version refuses another downgrade request. The fault must not send
// one.
func TestDowngradeOfEtcdGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.answers["/v3/maintenance/status"] = `{"version": "3.6.14", "storageVersion": "3.6.0"}`
		h.breaks(`etcd-0 /v3/maintenance/downgrade {"action":"ENABLE"`, errors.New("etcdserver: invalid downgrade target version"))
		begin(t, m, control.Fault{Kind: control.FaultDowngrade, To: "1.36", Components: []string{"etcd"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := m.List()[0]; s.Lost != "" || h.Config().ReleaseOf("etcd-1").Minor != "1.36" {
			t.Errorf("status = %+v, want a completed downgrade", s)
		}
	})
}

// The old program of the only member may be unable to read data that the new program wrote. The member then keeps the
// new program.
func TestUpgradeThatCannotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.version = "1.36"
		h.unready = func(name string) error { return errors.New(name + " does not answer") }
		begin(t, m, control.Fault{Kind: control.FaultUpgrade, To: "1.37", Components: []string{"etcd-0"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := m.List()[0]; !strings.Contains(s.Lost, "with the previous version 3.6.14 either") || h.Config().ReleaseOf("etcd-0").Minor != "1.37" {
			t.Errorf("status = %+v, versions = %v; want etcd-0 with 1.37 and a lost fault", s, h.Config().Versions)
		}
	})
}

// Two moves at the same time are refused, because each would be valid only for the versions that the other changes.
func TestOneMoveAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.version, h.starting = "1.36", time.Minute
		begin(t, m, control.Fault{Kind: control.FaultUpgrade, To: "1.37", Components: []string{"etcd"}})
		if _, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultDowngrade, To: "1.35", Components: []string{"kube-scheduler"}}); err == nil || !strings.Contains(err.Error(), "the versions of components is already used by fault 1") {
			t.Error(err)
		}
	})
}

// If a component does not serve with the new program, it gets its old program back. Later components are not changed.
func TestUpgradeThatFailsIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.version = "1.36"
		h.unready = func(name string) error {
			if h.Config().ReleaseOf(name).Minor == "1.37" && name == "kube-apiserver-1" {
				return errors.New(`kube-apiserver-1 exited with code 1 before it was ready; from its log: "unknown flag"`)
			}
			return nil
		}
		begin(t, m, control.Fault{Kind: control.FaultUpgrade, To: "1.37", Components: []string{"kube-apiserver", "kube-scheduler"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		s := m.List()[0]
		for _, want := range []string{
			"kube-apiserver-1 does not become ready with version v1.37.1: kube-apiserver-1 exited with code 1", `"unknown flag"`, "kube-apiserver-1 is ready with version v1.36.3 again",
			"these components were not changed to version 1.37: kube-scheduler-0, kube-scheduler-1",
		} {
			if !strings.Contains(s.Lost, want) {
				t.Errorf("the reason %q does not contain %q", s.Lost, want)
			}
		}
		if c := h.Config(); c.ReleaseOf("kube-apiserver-0").Minor != "1.37" || c.ReleaseOf("kube-apiserver-1").Minor != "1.36" || s.Ended.IsZero() {
			t.Errorf("versions = %v, status = %+v; want 1.37 only for kube-apiserver-0", c.Versions, s)
		}
		begin(t, m, control.Fault{Kind: control.FaultDowngrade, To: "1.36"})
		synctest.Wait()
		if c := h.Config(); c.ReleaseOf("kube-apiserver-0").Minor != "1.36" {
			t.Errorf("versions after the downgrade = %v, want 1.36 for kube-apiserver-0", c.Versions)
		}
	})
}

func TestMoveRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		for _, c := range []struct {
			version string
			fault   control.Fault
			want    string
		}{
			{"1.35", control.Fault{Kind: control.FaultUpgrade, To: "1.37"}, "more than one minor version"},
			{"1.36", control.Fault{Kind: control.FaultUpgrade, To: "1.35"}, "the fault upgrade cannot move it to v1.35.4"},
			{"1.36", control.Fault{Kind: control.FaultUpgrade, To: "1.36"}, "already"},
			{"1.36", control.Fault{Kind: control.FaultUpgrade, To: "1.37", Components: []string{"kube-scheduler"}}, "is newer than kube-apiserver-0 with version 1.36"},
			{"1.36", control.Fault{Kind: control.FaultUpgrade, To: "1.38"}, "unknown version"},
			{"1.36", control.Fault{Kind: control.FaultUpgrade, To: "1.37", Components: []string{"kube-scheduler-leader"}}, "the leader may change while components restart"},
			{"1.37", control.Fault{Kind: control.FaultDowngrade, To: "1.36", Components: []string{"kube-apiserver-0"}}, "is newer than kube-apiserver-0 with version 1.36"},
		} {
			h.version = c.version
			if _, err := m.Begin(t.Context(), c.fault); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Begin of %+v = %v, want %q", c.fault, err, c.want)
			}
		}
		h.version = "1.36"
		h.breaks("program of 1.37", errors.New("controlplane-1.37 was not found"))
		if _, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultUpgrade, To: "1.37"}); err == nil || !strings.Contains(err.Error(), "controlplane-1.37 was not found") {
			t.Error(err)
		}
		if lines := h.lines(); len(lines) > 0 {
			t.Errorf("something was done: %q", lines)
		}
	})
}

// A move affects only components whose program differs between the releases. 1.36 and 1.35 have the same etcd.
func TestMoveListsWhatMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.version = "1.36"
		s := begin(t, m, control.Fault{Kind: control.FaultDowngrade, To: "1.35"})
		same(t, "what moves", s.On, "kube-scheduler-0", "kube-scheduler-1", "kube-controller-manager-0", "kube-controller-manager-1", "kube-apiserver-0", "kube-apiserver-1")
		time.Sleep(time.Minute)
		synctest.Wait()
		if at := h.first(" end etcd"); at >= 0 {
			t.Errorf("the move ended an etcd member: %q", h.lines())
		}
		if c := h.Config(); c.ReleaseOf("etcd-0").Minor != "1.35" || c.ReleaseOf("kube-apiserver-1").Minor != "1.35" {
			t.Errorf("versions = %v, want 1.35 for all components", c.Versions)
		}
	})
}
