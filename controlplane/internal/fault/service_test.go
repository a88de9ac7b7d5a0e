package fault

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// When its fault ends, a service responds as before, even if it was restarted.
func TestServiceBehavesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, control.Fault{Kind: control.FaultService, Components: []string{"kms-plugin"}, Delay: time.Second, Fails: true, For: 5 * time.Second})
		time.Sleep(time.Second)
		m.Renew(t.Context(), "kms-plugin-1")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		same(t, "what was done", h.lines(),
			"0s behaviour of kms-plugin-0: 1s true", "0s behaviour of kms-plugin-1: 1s true", "1s behaviour of kms-plugin-1: 1s true",
			"5s behaviour of kms-plugin-0: 0s false", "5s behaviour of kms-plugin-1: 0s false")
	})
}

// The KMS plugins of all API servers share their keys, so a rotation applies to a kind.
func TestKeysAreRotatedByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, control.Fault{Kind: control.FaultKeyRotation, Components: []string{"kms-plugin", "oidc-issuer-0"}})
		synctest.Wait()
		same(t, "what was done", h.lines(), "0s rotate kms-plugin", "0s rotate oidc-issuer")
		if s := m.List()[0]; s.Ended.IsZero() || s.Lost != "" {
			t.Errorf("status = %+v, want an ended fault", s)
		}
	})
}
