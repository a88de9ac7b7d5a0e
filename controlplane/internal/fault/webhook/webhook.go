// Package webhook is an admission webhook that is slow or fails: a policy
// engine that is overloaded or gone, on which each create of a resource then
// waits, or breaks if its failurePolicy is Fail.
//
// Start serves it on the loopback network with its own certificate and registers it with the API server; Clear ends its
// effect and removes the registration; Close stops the server.
//
// Limits:
//   - It is on CREATE of one resource, in all versions and namespaces. It allows everything
//     it is asked, once it answers; a mutating one adds an annotation.
//   - API servers hear of a registration by a watch. Start and Clear wait until the
//     API server of the client has seen it; others may be some milliseconds late.
//   - An API server gives up after its timeout by itself: a delay beyond that
//     is the same as no answer.
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
)

// Options configure the webhook. control.Fault has checked their bounds.
type Options struct {
	// Name of the registration (the Validating- or MutatingWebhookConfiguration): a DNS
	// label that no other has, as "stormglass-fault-7".
	Name string
	// Resource whose creation it is asked about, by plural name and group:
	// "pods" or "deployments.apps".
	Resource string
	// Delay before each answer. Zero answers at once.
	Delay time.Duration
	// Jitter is added to or taken from Delay, evenly drawn up to so much. At
	// most Delay.
	Jitter time.Duration
	// Fails makes each answer a 500, after the delay.
	Fails bool
	// Ignore is failurePolicy Ignore: what gets no answer is allowed. Else Fail.
	Ignore bool
	// TimeoutSeconds is the API server's patience, 1 to 30. Zero: upstream's 10.
	TimeoutSeconds int
	// Count is the number of registered webhooks. They give the same answers.
	Count int
	// Mutates makes the webhooks mutating: each adds its own annotation. Reinvoke sets reinvocationPolicy to IfNeeded;
	// otherwise it is Never.
	Mutates, Reinvoke bool
	// Seed of the jitter.
	Seed int64
}

// Webhook is a registered webhook.
type Webhook struct {
	options Options
	client  kubernetes.Interface
	server  *http.Server
	address string
	lost    bool

	served   chan error
	probed   chan struct{} // gets a value when a probe was reviewed
	cleared  chan struct{} // closed by Clear: all are allowed at once
	clearing sync.Once

	mu     sync.Mutex
	random *rand.Rand
	gone   time.Time // when the registration was removed
}

// linger is how long the server keeps running after its registration was removed: an API server that has not seen the
// removal yet must get its answer.
const linger = time.Second

// ErrUncertain is wrapped by Start's error when the registration may exist all the
// same, or appear later: an API server that got the request has not answered, or has
// not removed it again. The registration then has no server.
var ErrUncertain = errors.New("the registration may still succeed")

// Start serves the webhook and registers it, and returns when the API server
// asks it. The configuration's user must be allowed to create and delete
// Validating- and MutatingWebhookConfigurations, and to create ConfigMaps in the namespace
// "default" (as a dry run; nothing is stored). If the context ends
// before, or the API server cannot say for half a minute, all is undone, as far as that can be known (ErrUncertain).
func Start(ctx context.Context, config *rest.Config, o Options) (*Webhook, error) {
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
	w := newWebhook(client, o)
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
	return nil, errors.Join(fmt.Errorf("webhook: %w", err), w.stop()) // another's registration of that name stays
}

// enter registers the webhook and returns when the API server calls it. It retries for startWithin while the API server
// cannot answer, for example while etcd elects a leader. sent means that a registration may exist, answered that it
// does.
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
			answered = failure == nil || sent && apierrors.IsAlreadyExists(failure) // the unanswered request had succeeded
			sent = true
		}
		if answered {
			failure = w.awaitProbe(ctx, true)
		}
		if err == nil || ctx.Err() == nil { // else the one before says more
			err = failure
		}
		return failure == nil, nil
	})
	return sent, answered, err
}

// startWithin bounds how long Start asks an API server again that cannot say, startAgain is how often.
const (
	startWithin = 30 * time.Second
	startAgain  = 250 * time.Millisecond
)

// giveUp removes the registration, even if the context has ended. answered means that it existed for certain: if it is
// not found, it does not appear later.
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

func newWebhook(client kubernetes.Interface, o Options) *Webhook {
	return &Webhook{
		options: o, client: client,
		served: make(chan error, 1), probed: make(chan struct{}, 1), cleared: make(chan struct{}),
		random: rand.New(rand.NewPCG(uint64(o.Seed), 0)),
	}
}

// Lost reports whether an earlier registration got no answer: once the current one is removed, the earlier one may take
// effect.
func (w *Webhook) Lost() bool { return w.lost }

// Address returns the address that it listens on: "127.0.0.1:12345".
func (w *Webhook) Address() string { return w.address }

// Clear ends the fault: from the moment it is called every review is allowed
// at once, those that wait too. Then it removes the registration and returns when
// the API server asks no more. After an error it can be called again; the
// registration may be there, and harmless as long as the server runs.
func (w *Webhook) Clear(ctx context.Context) error {
	w.clearing.Do(func() { close(w.cleared) })
	w.mu.Lock()
	done := !w.gone.IsZero()
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
	return nil
}

// Close clears the fault if that was not done, and ends the server a second after the registration
// was removed: until then API servers that have not heard of that get their answer.
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
