// Package webhook runs an admission webhook that is slow or fails, like an overloaded or failed policy engine.
// Each request that creates an object of a given resource then waits for the webhook. If the webhook fails, the request
// fails, unless the failurePolicy is Ignore.
//
// Start serves the webhook at a loopback address, with its own certificate, and registers it with the API server. Clear
// ends the effect of the webhook and removes the registration. Close stops the server.
//
// Limits:
//   - The webhook applies to CREATE of one resource, in all versions and namespaces. Unless Fault.Fails is set, it
//     allows the request. A mutating webhook also adds an annotation.
//   - API servers learn of a registration through a watch. Start and Clear wait until the API server that the client calls
//     has applied the change. Other API servers may apply it some milliseconds later.
//   - An API server stops waiting after the timeout of the registration. A longer delay has the same effect as no
//     response.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Webhook is a registered webhook.
type Webhook struct {
	name    string
	fault   control.Fault
	client  kubernetes.Interface
	server  *http.Server
	address string
	lost    bool

	served   chan error
	probed   chan struct{} // receives a value when the webhook has reviewed a probe
	cleared  chan struct{} // closed by Clear; the webhook then allows all requests immediately
	clearing sync.Once

	mu       sync.Mutex
	random   *rand.Rand
	gone     time.Time // time at which the registration was removed
	uncalled bool      // whether a probe has shown that the API server no longer calls the webhook
}

// linger is how long the server keeps running after its registration was removed. An API server that has not seen the
// removal yet must still get a response.
const linger = time.Second

// ErrUncertain means that a registration may exist, or may still appear, although Start has failed. Either the API
// server did not respond to the request to register, or Start could not remove the registration. Start has stopped the
// webhook's server, so calls of this webhook would fail.
var ErrUncertain = errors.New("the registration may still succeed")

// Start serves the webhook that f describes, registers it, and returns when the API server calls it. name is the unique
// name of the registration (the Validating- or MutatingWebhookConfiguration), a DNS label such as "stormglass-fault-7".
// f must be valid (Fault.Problems). The user of config must be allowed to create and delete these configurations, and
// to create ConfigMaps in the namespace "default" (as a dry run; nothing is stored). If ctx ends first, or the API
// server does not confirm the registration within half a minute, Start undoes everything. If Start cannot know whether
// the registration is removed, its error wraps ErrUncertain.
func Start(ctx context.Context, config *rest.Config, name string, f control.Fault) (*Webhook, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the probes come faster than the client's own limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	certificate, bundle, err := servingCertificate(time.Now())
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	w := newWebhook(client, name, f)
	w.address = listener.Addr().String()
	w.server = serverOf(w.handler(), certificate)
	go func() { w.served <- w.server.ServeTLS(listener, "", "") }()
	sent, answered, err := w.enter(ctx, bundle)
	switch {
	case err == nil:
		return w, nil
	case sent:
		return nil, errors.Join(fmt.Errorf("webhook: %w", err), w.giveUp(ctx, answered), w.stop())
	}
	return nil, errors.Join(fmt.Errorf("webhook: %w", err), w.stop()) // Start did not create a registration of this name, so keep it
}

// enter registers the webhook and returns when the API server calls the webhook. It retries for startWithin while the
// API server cannot respond, for example while etcd elects a leader. sent reports whether a registration may exist, and
// answered whether it does exist.
func (w *Webhook) enter(ctx context.Context, bundle []byte) (sent, answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, startAgain, true, func(ctx context.Context) (bool, error) {
		var failure error
		if !answered {
			if failure = w.register(ctx, bundle); refused(failure) && !sent {
				err = failure
				return false, err
			}
			w.lost = sent && failure == nil
			answered = failure == nil || sent && apierrors.IsAlreadyExists(failure) // AlreadyExists: an earlier request had succeeded
			sent = true
		}
		if answered {
			failure = w.awaitProbe(ctx, true)
		}
		if err == nil || ctx.Err() == nil { // otherwise keep the previous error, which says more
			err = failure
		}
		return failure == nil, nil
	})
	return sent, answered, err
}

// startWithin is the maximum time for which Start retries while the API server cannot respond. startAgain is the
// interval of the retries.
const (
	startWithin = 30 * time.Second
	startAgain  = 250 * time.Millisecond
)

// giveUp removes the registration, even if the context has ended. `answered` reports whether the registration is known
// to have existed. If so, and giveUp does not find it now, it will not appear later.
func (w *Webhook) giveUp(ctx context.Context, answered bool) error {
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoPatience)
	defer cancel()
	found, err := w.unregister(undo)
	if err != nil || w.lost || !found && !answered {
		err = errors.Join(err, ErrUncertain)
	}
	return err
}

const undoPatience = 5 * time.Second

func newWebhook(client kubernetes.Interface, name string, f control.Fault) *Webhook {
	return &Webhook{
		name: name, fault: f, client: client,
		served: make(chan error, 1), probed: make(chan struct{}, 1), cleared: make(chan struct{}),
		random: rand.New(rand.NewPCG(uint64(f.Seed), 0)),
	}
}

// Lost reports whether an earlier request to register got no response. The API server may still execute that request
// after the current registration is removed.
func (w *Webhook) Lost() bool { return w.lost }

// Clear ends the effect of the webhook and removes the registration. When Clear is called, the webhook allows all
// reviews immediately, including the reviews that wait. Clear returns when the API server no longer calls the webhook.
// After an error, the API server may still call the webhook, which is harmless while the server runs; call Clear again.
func (w *Webhook) Clear(ctx context.Context) error {
	w.clearing.Do(func() { close(w.cleared) })
	w.mu.Lock()
	done := w.uncalled
	w.mu.Unlock()
	if done {
		return nil
	}
	if _, err := w.unregister(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.gone = time.Now()
	w.mu.Unlock()
	if err := w.awaitProbe(ctx, false); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	w.mu.Lock()
	w.uncalled = true
	w.mu.Unlock()
	return nil
}

// Close calls Clear if the webhook is not cleared yet, and stops the server. The server keeps running until one second
// after the removal of the registration, so that API servers that have not seen the removal yet still get a response.
func (w *Webhook) Close(ctx context.Context) error {
	err := w.Clear(ctx)
	w.mu.Lock()
	gone := w.gone
	w.mu.Unlock()
	if !gone.IsZero() {
		select {
		case <-time.After(time.Until(gone.Add(linger))):
		case <-ctx.Done():
		}
	}
	return errors.Join(err, w.stop())
}

func (w *Webhook) stop() error {
	w.clearing.Do(func() { close(w.cleared) })
	err := w.server.Close()
	if served := <-w.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	w.served <- http.ErrServerClosed // for a second call
	return err
}
