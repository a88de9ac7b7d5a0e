package node

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

const (
	// rotatePause is the minimum time between two renewals of a client certificate.
	rotatePause = time.Minute
	// rotateBackoff and rotateBackoffMax are the first and longest wait before the retry of a failed renewal. A kubelet
	// waits at most 32 s; thousands of nodes that share an administrator's identity wait longer.
	rotateBackoff    = 2 * time.Second
	rotateBackoffMax = 5 * time.Minute
)

// rotation is the state of the renewal of a link's client certificate. Only one goroutine at a time may write `expires`
// and `failures`: first the goroutine that dials first, later the goroutine that has set `due` to 0.
type rotation struct {
	jitter   float64      // a number from 0 to 1 that determines when the certificate is renewed
	due      atomic.Int64 // time of the next attempt in Unix nanoseconds; 0 means never, or that an attempt is running
	expires  time.Time    // end of the certificate's validity
	failures int          // number of failed renewals in a row
}

// rotateAt returns when to renew a client certificate and when it expires. The renewal is due after 70% to 90% of the
// validity, as in a kubelet (client-go/util/certificate), but not within rotatePause from now. Without a certificate,
// both times are zero.
func rotateAt(config *rest.Config, jitter float64, now time.Time) (due, expires time.Time) {
	certs, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		return due, expires
	}
	expires = certs[0].NotAfter
	due = certs[0].NotBefore.Add(time.Duration((0.7 + 0.2*jitter) * float64(expires.Sub(certs[0].NotBefore))))
	if soonest := now.Add(rotatePause); due.Before(soonest) {
		due = soonest
	}
	return due, expires
}

// free returns a connection with at least the given number of free streams. If the client certificate is due for
// renewal, free starts the renewal. After the renewal, free drops the connections that use the old certificate, as a
// kubelet does.
func (l *link) free(ctx context.Context, least int) (*h2conn.Conn, error) {
	r := &l.rotation
	if due := r.due.Load(); due != 0 {
		now := l.fleet.plan.clock.Now()
		switch {
		case now.UnixNano() < due || !r.due.CompareAndSwap(due, 0):
		case now.After(r.expires): // the node was down for long: the server would refuse the call
			l.rotate()
		default:
			l.fleet.workers.run(l.rotate)
		}
	}
	if l.dialled.Load() != l.access.Load() {
		l.Drop(false)
	}
	return l.GetFree(ctx, l.dial, least)
}

// rotate requests a new client certificate. After an error it keeps the old certificate, and plans another attempt.
func (l *link) rotate() {
	f, r := l.fleet, &l.rotation
	config, err := l.identity(f.ctx)
	if err == nil {
		err = l.adopt(config)
	}
	if err == nil {
		return
	}
	r.failures++
	if f.ctx.Err() == nil && !f.unrotated.Swap(true) { // log one line for all nodes
		f.plan.Log("renew a node's client certificate, valid until %s: %v (each node will retry)", r.expires.UTC().Format(time.RFC3339), err)
	}
	wait := apiclient.Backoff{First: rotateBackoff, Most: rotateBackoffMax}.Wait(r.failures, r.jitter)
	r.due.Store(f.plan.clock.Now().Add(wait).UnixNano())
}

// adopt uses config for later connections if its certificate expires later than the current one. It also plans the
// renewal of the certificate.
func (l *link) adopt(config *rest.Config) error {
	r := &l.rotation
	due, expires := rotateAt(config, r.jitter, l.fleet.plan.clock.Now())
	if l.access.Load() == nil || expires.After(r.expires) {
		to, err := apiclient.New(config, l.roots)
		if err != nil {
			return err
		}
		r.failures, r.expires = 0, expires
		l.access.Store(to)
		l.fleet.unrotated.Store(false)
	}
	if !due.IsZero() {
		r.due.Store(due.UnixNano())
	}
	return nil
}
