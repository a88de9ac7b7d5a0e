package fault

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

var rehearsal = control.Fault{Kind: control.FaultRestore}

// A rehearsal of a restore affects all components and excludes faults on processes. It ends when all components are
// ready.
func TestRestoreEndsWhenAllComponentsAreReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.stopping, h.starting = 3*time.Second, 40*time.Second
		if s := begin(t, m, rehearsal); len(s.On) != len(h.Config().Components()) || !s.Ends.IsZero() {
			t.Errorf("begun fault = %+v, want all components", s)
		}
		var busy *BusyError
		for _, f := range []control.Fault{slowOf("etcd-0", time.Second), {Kind: control.FaultPartition, Components: []string{"etcd-0"}}, {Kind: control.FaultWebhook, Resource: "pods", Fails: true}} {
			if _, err := m.Begin(t.Context(), f); !errors.As(err, &busy) {
				t.Errorf("Begin of %s during the rehearsal = %v, want a BusyError", f.Kind, err)
			}
		}
		time.Sleep(43 * time.Second)
		synctest.Wait()
		if s := m.List()[0]; s.Ended.Sub(s.Active) != 43*time.Second || s.Lost != "" {
			t.Errorf("status = %+v, want an end after 43s", s)
		}
		same(t, "what was done", h.lines(), "0s restore from a snapshot")
	})
}

// A failed rehearsal is reported as a lost fault.
func TestFailedRestoreIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("restore", errors.New("no space left on device"))
		begin(t, m, rehearsal)
		synctest.Wait()
		if s := m.List()[0]; s.Ended.IsZero() || s.Lost != "no space left on device" || s.Error != "" {
			t.Errorf("status = %+v, want an ended fault with the reason", s)
		}
	})
}
