package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// certificateLife is the lifetime of the certificates in these tests.
const certificateLife = 10 * time.Minute

// shortLived signs certificates that end certificateLife after the clock's time. It refuses the requests from the
// second one up to the one with the number `refuse`.
type shortLived struct {
	*signer
	clock  fakeClock
	refuse int32
	asked  atomic.Int32
}

func (s *shortLived) For(ctx context.Context, node string) (*rest.Config, error) {
	if n := s.asked.Add(1); n > 1 && n <= s.refuse {
		return nil, errors.New("no signer runs")
	}
	signer, ca := *s.signer, *s.ca
	ca.NotAfter = s.clock.Now().Add(certificateLife)
	signer.ca = &ca
	return signer.For(ctx, node)
}

func (s *shortLived) ForProxies(ctx context.Context) (*rest.Config, error) { return s.For(ctx, "") }

// rotating starts one node with short-lived certificates. The stub refuses expired certificates, as an API server does.
func rotating(t *testing.T, refuse int32, log func(string, ...any)) (*stub, *Fleet, *shortLived) {
	s := newStub(t)
	ids, err := NewSigner(s.config(), s.ca)
	must(t, err)
	short := &shortLived{signer: ids.(*signer), clock: newFakeClock(time.Now()), refuse: refuse}
	s.answer = func(w http.ResponseWriter, r request) bool {
		if !short.clock.Now().After(r.expires) {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	f := s.fleet(1, func(c *Config) {
		c.clock, c.Identities, c.Log = short.clock, short, log
		c.Spec.LeaseRenew = scenario.Duration(20 * time.Second)
	})
	must(t, f.Start(t.Context()))
	return s, f, short
}

// A node renews its certificate in time and misses no renewal of its Lease. While the renewal is refused, it uses the old
// certificate and tries again.
func TestCertificatesAreRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		refuse      int32
		least, most int32 // requests for certificates
		lines       int
	}{
		"granted":         {0, 4, 10, 0},
		"refused 2 times": {3, 6, 12, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			s, f, ids := rotating(t, c.refuse, func(format string, args ...any) {
				lines = append(lines, fmt.Sprintf(format, args...))
			})
			k := f.kubelets[0]
			end := ids.clock.Now().Add(3 * certificateLife)
			for beats := int64(1); ids.clock.Now().Before(end); beats++ {
				k.heartbeat.mu.Lock()
				due := k.heartbeat.due
				k.heartbeat.mu.Unlock()
				ids.clock.SetTime(due)
				eventually(t, "the Lease is renewed", func() bool {
					if f.Results().Heartbeats == beats {
						return true
					}
					ids.clock.Step(time.Millisecond) // a request on the connection that is replaced is repeated after a pause
					return false
				})
				eventually(t, "the attempt to renew the certificate ends", func() bool { return k.link.rotation.due.Load() != 0 })
			}
			if r := f.Results(); r.MissedByGenerator+r.MissedByServer != 0 {
				t.Errorf("missed %d and %d", r.MissedByGenerator, r.MissedByServer)
			}
			if asked := ids.asked.Load(); asked < c.least || asked > c.most {
				t.Errorf("%d requests for certificates, want %d to %d", asked, c.least, c.most)
			}
			if len(lines) != c.lines || c.lines > 0 && !strings.Contains(lines[0], "no signer runs") {
				t.Errorf("%d lines, want %d: %q", len(lines), c.lines, lines)
			}
			s.await("the connections with old certificates are closed", func() bool { return len(s.conns) == 1 })
		})
	}
}

// A node that was down until its certificate expired gets a new one before it registers.
func TestNodeReturnsAfterItsCertificateExpired(t *testing.T) {
	s, f, ids := rotating(t, 0, t.Logf)
	f.Fail(1)
	s.await("its connection is closed", func() bool { return len(s.conns) == 0 })
	ids.clock.Step(2 * certificateLife)
	must(t, f.Recover())
	eventually(t, "the node is back", func() bool { l := f.Live(); return l.Ready == 1 && l.Failed == 0 })
}

// All kube-proxies get the same new identity. While its renewal fails, one of them retries per minute.
func TestIdentityOfKubeProxiesIsRenewedOnce(t *testing.T) {
	s := newStub(t)
	ids, err := NewSigner(s.config(), s.ca)
	must(t, err)
	short := &shortLived{signer: ids.(*signer), clock: newFakeClock(time.Now()), refuse: 2}
	o := &once{make: short.ForProxies, clock: short.clock}
	first, err := o.get(t.Context())
	must(t, err)
	for _, c := range []struct {
		after time.Duration
		asked int32
		fails bool
		renew bool
	}{
		{0, 1, false, false},
		{certificateLife * 7 / 10, 2, true, false},
		{0, 2, false, false},
		{rotatePause, 3, false, true},
		{0, 3, false, true},
	} {
		short.clock.Step(c.after)
		got, err := o.get(t.Context())
		if (err != nil) != c.fails || short.asked.Load() != c.asked || !c.fails && (got != first) != c.renew {
			t.Errorf("%v later: another identity: %t, %v, %d requests; want %+v", c.after, got != first, err, short.asked.Load(), c)
		}
	}
}
