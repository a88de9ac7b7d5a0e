package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
)

// apiServer is a stub API server. It stores registrations. A changed registration takes effect after `late` probes. The
// server then calls the registered webhook for each new ConfigMap.
type apiServer struct {
	*httptest.Server
	t    *testing.T
	late int // number of probes before a change takes effect
	// unanswered makes the first registration fail with 504. With "kept", the server stores it anyway; with "lost", it
	// does not. If unanswered is empty, the registration succeeds.
	unanswered string

	mu         sync.Mutex
	registered *admissionregistration.ValidatingWebhookConfiguration
	inForce    *admissionregistration.ValidatingWebhookConfiguration
	probes     int    // since the last change
	deaf       func() // if set, the server applies no change and calls this function at each probe
	broken     bool   // whether the next probe fails
}

const registrations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

func startAPIServer(t *testing.T, late int) *apiServer {
	t.Helper()
	s := &apiServer{t: t, late: late}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+registrations, func(w http.ResponseWriter, r *http.Request) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(readAll(t, r.Body), nil, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if s.current() != nil {
			reply(w, http.StatusConflict, status(409, "AlreadyExists"))
			return
		}
		first := s.unanswered
		if s.unanswered = ""; first != "lost" {
			s.change(object.(*admissionregistration.ValidatingWebhookConfiguration))
		}
		if first != "" {
			reply(w, http.StatusGatewayTimeout, status(504, "Timeout"))
			return
		}
		reply(w, http.StatusCreated, s.registered)
	})
	mux.HandleFunc("DELETE "+registrations+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		if now := s.current(); now == nil || now.Name != r.PathValue("name") {
			reply(w, http.StatusNotFound, status(404, "NotFound"))
			return
		}
		s.change(nil)
		reply(w, http.StatusOK, status(200, ""))
	})
	mux.HandleFunc("POST /api/v1/namespaces/default/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("dryRun") != "All" {
			t.Error("the probe is not a dry run")
		}
		if s.fails() {
			reply(w, http.StatusInternalServerError, status(500, "InternalError"))
			return
		}
		if hook := s.probe(); hook != nil {
			if code, err := ask(r.Context(), *hook.Webhooks[1].ClientConfig.URL, hook); err != nil || code != http.StatusOK {
				t.Errorf("the call of the probe webhook returned %d, %v; want 200", code, err)
			}
		}
		reply(w, http.StatusCreated, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"})
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func status(code int, reason string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Status", "code": code, "reason": reason}
}

func (s *apiServer) change(to *admissionregistration.ValidatingWebhookConfiguration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered, s.probes = to, 0
}

func (s *apiServer) current() *admissionregistration.ValidatingWebhookConfiguration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registered
}

// fails reports whether this probe fails.
func (s *apiServer) fails() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	broken := s.broken
	s.broken = false
	return broken
}

// probe returns the registration that applies at this probe, or nil.
func (s *apiServer) probe() *admissionregistration.ValidatingWebhookConfiguration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf != nil {
		s.deaf()
	} else if s.probes++; s.probes > s.late {
		s.inForce = s.registered
	}
	return s.inForce
}

// ask sends a review as an API server does. It trusts only the certificates of the bundle.
func ask(ctx context.Context, url string, registration *admissionregistration.ValidatingWebhookConfiguration) (int, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(registration.Webhooks[0].ClientConfig.CABundle) {
		return 0, errors.New("no certificate in the bundle")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(aReview))
	if err != nil {
		return 0, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = new(bytes.Buffer).ReadFrom(response.Body)
	return response.StatusCode, err
}

func (s *apiServer) config() *rest.Config { return &rest.Config{Host: s.URL} }

func TestWebhookLifecycle(t *testing.T) {
	api := startAPIServer(t, 2)
	w, err := Start(t.Context(), api.config(), "stormglass-fault-1", control.Fault{Resource: "deployments.apps", Delay: time.Hour, Ignore: true, TimeoutSeconds: 30})
	if err != nil {
		t.Fatal(err)
	}
	registered := api.current()
	hook := registered.Webhooks[0]
	rule := hook.Rules[0]
	if registered.Name != "stormglass-fault-1" || rule.Resources[0] != "deployments" || rule.APIGroups[0] != "apps" ||
		*hook.FailurePolicy != admissionregistration.Ignore || *hook.TimeoutSeconds != 30 {
		t.Errorf("registered webhooks = %+v, want deployments.apps with Ignore and a timeout of 30 s", registered)
	}

	// A review waits until Clear. Clear returns when the API server no longer calls the webhook.
	answered, sent := make(chan error, 1), make(chan struct{})
	go func() {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
		code, err := ask(ctx, *hook.ClientConfig.URL, registered)
		if err == nil && code != http.StatusOK {
			err = errors.New(http.StatusText(code))
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("the webhook responded before the delay was over: %v", err)
	case <-sent:
	}
	if err := w.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the delayed review failed: %v", err)
	}
	if api.current() != nil || api.probe() != nil {
		t.Error("the registration exists after Clear")
	}

	// Another API server that has not seen the removal yet still gets a response.
	if code, err := ask(t.Context(), *hook.ClientConfig.URL, registered); err != nil || code != http.StatusOK {
		t.Errorf("late review = %d, %v; want 200", code, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no time to linger
	if err := w.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := ask(t.Context(), *hook.ClientConfig.URL, registered); err == nil {
		t.Error("the webhook's server still responds after Close")
	}
	if err := w.Close(ctx); err != nil {
		t.Errorf("second Close = %v, want nil", err)
	}
}

func TestCloseRemovesRegistrationAndServer(t *testing.T) {
	api := startAPIServer(t, 0)
	w, err := Start(t.Context(), api.config(), "n", control.Fault{Resource: "pods", Fails: true})
	if err != nil {
		t.Fatal(err)
	}
	registered := api.current()
	hook := registered.Webhooks[0]
	if hook.Rules[0].APIGroups[0] != "" || *hook.FailurePolicy != admissionregistration.Fail || hook.TimeoutSeconds != nil {
		t.Errorf("registered webhook = %+v, want the core group, Fail and no timeout", hook)
	}
	if code, err := ask(t.Context(), *hook.ClientConfig.URL, registered); err != nil || code != http.StatusInternalServerError {
		t.Errorf("review by a failing webhook = %d, %v; want 500", code, err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if api.current() != nil {
		t.Error("the registration exists after Close")
	}
	if _, err := ask(t.Context(), *hook.ClientConfig.URL, registered); err == nil {
		t.Error("the webhook's server still responds after Close")
	}
}

// After a failed probe, the API server may still call the webhook. The next Clear waits until it does not.
func TestClearAfterAFailedProbeWaits(t *testing.T) {
	api := startAPIServer(t, 2)
	w, err := Start(t.Context(), api.config(), "n", control.Fault{Resource: "pods", Fails: true})
	if err != nil {
		t.Fatal(err)
	}
	api.mu.Lock()
	api.broken = true
	api.mu.Unlock()
	if err := w.Clear(t.Context()); err == nil || !strings.Contains(err.Error(), "check whether the registration n is active") {
		t.Errorf("Clear with a failed probe = %v, want an error of the probe", err)
	}
	if err := w.Clear(t.Context()); err != nil {
		t.Error(err)
	}
	api.mu.Lock()
	if api.inForce != nil {
		t.Error("the API server still calls the webhook after Clear")
	}
	api.mu.Unlock()
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCancelledStartRemovesRegistration(t *testing.T) {
	api := startAPIServer(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	api.deaf = cancel
	if _, err := Start(ctx, api.config(), "n", control.Fault{Resource: "pods", Fails: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("Start = %v, want context.Canceled", err)
	} else if errors.Is(err, ErrUncertain) {
		t.Errorf("Start removed the registration, but returned ErrUncertain: %v", err)
	}
	if api.current() != nil {
		t.Error("the registration exists after a failed Start")
	}
}

// A request to register that got no response may take effect after the next registration was removed.
func TestCancelledStartAfterALostRegistrationIsUncertain(t *testing.T) {
	api := startAPIServer(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	api.unanswered, api.deaf = "lost", cancel
	if _, err := Start(ctx, api.config(), "n", control.Fault{Resource: "pods", Fails: true}); !errors.Is(err, ErrUncertain) {
		t.Errorf("Start = %v, want ErrUncertain", err)
	}
	if api.current() != nil {
		t.Error("the registration exists after a failed Start")
	}
}

// Only a request without a response may still be executed later.
func TestUnansweredRegistrationIsUncertain(t *testing.T) {
	for _, c := range []struct {
		code      int // 0: the connection ends instead
		uncertain bool
	}{{0, true}, {http.StatusGatewayTimeout, true}, {http.StatusInternalServerError, true}, {http.StatusForbidden, false}, {http.StatusConflict, false}} {
		asked, removed := 0, 0
		ctx, giveUp := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				removed++
				reply(w, http.StatusNotFound, status(404, "NotFound"))
				return
			}
			if asked++; asked == 2 {
				giveUp()
			}
			if c.code == 0 {
				panic(http.ErrAbortHandler)
			}
			reply(w, c.code, status(c.code, ""))
		}))
		_, err := Start(ctx, &rest.Config{Host: server.URL}, "n", control.Fault{Resource: "pods", Fails: true})
		giveUp()
		if err == nil || asked > 1 != c.uncertain || errors.Is(err, ErrUncertain) != c.uncertain || removed > 0 != c.uncertain {
			t.Errorf("%d: %d requests to register, %d requests to remove, error %v", c.code, asked, removed, err)
		}
		server.Close()
	}
}

// Start retries while an election of etcd blocks writes. A write that got no response may have succeeded.
func TestRegistrationIsTriedAgain(t *testing.T) {
	for _, first := range []string{"lost", "kept"} {
		api := startAPIServer(t, 0)
		api.unanswered = first
		w, err := Start(t.Context(), api.config(), "n", control.Fault{Resource: "pods", Fails: true})
		if err != nil {
			t.Fatalf("Start after a registration that was %s failed: %v", first, err)
		}
		if w.Lost() != (first == "lost") {
			t.Errorf("Lost after a registration that was %s = %v, want %v", first, w.Lost(), first == "lost")
		}
		if err := w.Close(t.Context()); err != nil || api.current() != nil {
			t.Errorf("Close after a registration that was %s = %v, want no registration; left: %v", first, err, api.current())
		}
	}
}

func TestExistingRegistrationIsKept(t *testing.T) {
	api := startAPIServer(t, 0)
	w, err := Start(t.Context(), api.config(), "n", control.Fault{Resource: "pods", Fails: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), api.config(), "n", control.Fault{Resource: "pods", Fails: true}); err == nil || !strings.Contains(err.Error(), "register") {
		t.Errorf("Start with an existing registration = %v, want an error of register", err)
	}
	if api.current() == nil {
		t.Error("Start removed a registration that it did not create")
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNoAPIServer(t *testing.T) {
	api := startAPIServer(t, 0)
	w, err := Start(t.Context(), api.config(), "n", control.Fault{Resource: "pods", Fails: true})
	if err != nil {
		t.Fatal(err)
	}
	api.Close()
	if _, err := Start(t.Context(), api.config(), "m", control.Fault{Resource: "pods", Fails: true}); err == nil || !strings.Contains(err.Error(), "register") || errors.Is(err, ErrUncertain) {
		t.Errorf("Start without an API server = %v, want an error of register", err)
	}
	if err := w.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "registration n") {
		t.Errorf("Close without an API server = %v, want an error with the registration", err)
	}
}

func TestMutatingWebhooksAreAskedInTurn(t *testing.T) {
	w := newWebhook(nil, "stormglass-fault-1", control.Fault{Resource: "pods", Webhooks: 2, Mutates: true, Reinvoke: true})
	w.address = "127.0.0.1:1"
	var all []string
	for _, h := range w.mutating(w.hooks(nil)) {
		if *h.ReinvocationPolicy != admissionregistration.IfNeededReinvocationPolicy {
			t.Errorf("reinvocationPolicy of %s = %s, want IfNeeded", h.Name, *h.ReinvocationPolicy)
		}
		all = append(all, h.Name+" "+*h.ClientConfig.URL+" "+h.Rules[0].Resources[0])
	}
	want := "review-0.stormglass-fault-1.stormglass.dev https://127.0.0.1:1/review/0 pods, " +
		"review-1.stormglass-fault-1.stormglass.dev https://127.0.0.1:1/review/1 pods, " +
		"probe.stormglass-fault-1.stormglass.dev https://127.0.0.1:1/probe configmaps"
	if got := strings.Join(all, ", "); got != want {
		t.Error(got)
	}
}
