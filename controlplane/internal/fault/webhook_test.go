package fault

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/webhook"
)

func TestServesCreatableResources(t *testing.T) {
	answers := map[string]string{
		"/api/v1":                       `{"resources": [{"name": "pods", "verbs": ["create", "get"]}, {"name": "componentstatuses", "verbs": ["get", "list"]}]}`,
		"/apis/apps":                    `{"versions": [{"groupVersion": "apps/v1"}]}`,
		"/apis/apps/v1":                 `{"resources": [{"name": "deployments", "verbs": ["create"]}, {"name": "deployments/status", "verbs": ["get"]}]}`,
		"/apis/resource.k8s.io":         `{"versions": [{"groupVersion": "resource.k8s.io/v1"}, {"groupVersion": "resource.k8s.io/v1beta1"}]}`,
		"/apis/resource.k8s.io/v1":      `{"resources": []}`,
		"/apis/resource.k8s.io/v1beta1": `{"resources": [{"name": "resourceclaims", "verbs": ["create"]}]}`,
		"/apis/broken.example.com":      `{"versions": [{"groupVersion": "broken.example.com/v1"}]}`,
		"/apis/broken.example.com/v1":   `{`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	a := admin{client: client}
	for resource, want := range map[string]bool{
		"pods": true, "deployments.apps": true, "resourceclaims.resource.k8s.io": true,
		"deployments": false, "pods.apps": false, "componentstatuses": false, "things.nowhere.dev": false,
	} {
		if got, err := a.serves(t.Context(), resource); err != nil || got != want {
			t.Errorf("%s: %v, %v", resource, got, err)
		}
	}
	if _, err := a.serves(t.Context(), "things.broken.example.com"); err == nil {
		t.Error("serves accepts an invalid response")
	}
	server.Close()
	if _, err := a.serves(t.Context(), "pods"); err == nil {
		t.Error("serves succeeds without an API server")
	}
}

// The Manager refuses a webhook that would never be called, and does not register it.
func TestWebhookOnUnservedResourceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		f := control.Fault{Kind: control.FaultWebhook, Resource: "deployments", Fails: true}
		h.breaks("serves deployments", errNotServed)
		_, err := m.Begin(t.Context(), f)
		checked := m.Check(t.Context(), f)
		var invalid *control.InvalidFault
		if !errors.As(err, &invalid) || checked == nil || checked.Error() != err.Error() || !strings.HasPrefix(err.Error(), "resource: the API server does not serve deployments, or does not allow creating them (") {
			t.Errorf("begin: %v\ncheck: %v", err, checked)
		}
		h.breaks("serves deployments", errors.New("connection refused"))
		if _, err := m.Begin(t.Context(), f); err == nil || err.Error() != "webhook cannot begin: look up deployments at the API server: connection refused" {
			t.Errorf("without an API server: %v", err)
		}
		if len(h.lines()) > 0 {
			t.Errorf("done nevertheless: %q", h.lines())
		}
	})
}

// The API server may be gone when the webhook is to be removed.
func TestWebhookIsRemovedOnceAPIServerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, control.Fault{Kind: control.FaultWebhook, Resource: "deployments.apps", Delay: time.Second, For: time.Second})
		h.breaks("webhook gone", errors.New("connection refused"))
		time.Sleep(11 * time.Second)
		h.breaks("webhook gone", nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if s := m.List()[0]; s.Error != "" || s.Ended.IsZero() {
			t.Errorf("status: %+v", s)
		}
		if trace := h.lines(); len(trace) != 2 || !strings.Contains(trace[0], "stormglass-fault-1-deployments-apps on deployments.apps") {
			t.Errorf("what was done: %v", trace)
		}
	})
}

// A registration that was given up may still take effect.
func TestWebhookRegisteredLateIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("webhook stormglass-fault-1-pods", fmt.Errorf("request timed out: %w", webhook.ErrUncertain))
		h.breaks("remove stormglass-fault-1-pods", errors.New("not found"))
		if _, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultWebhook, Resource: "pods", Fails: true}); err == nil {
			t.Fatal("begun")
		}
		time.Sleep(59 * time.Second)
		h.breaks("remove stormglass-fault-1-pods", nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		same(t, "what was done", h.lines(), "1m0s remove stormglass-fault-1-pods")
	})
}

// An unanswered registration that was made again may also take effect later.
func TestLostRegistrationIsRemovedAfterTheFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.lostWebhook = true
		begin(t, m, control.Fault{Kind: control.FaultWebhook, Resource: "pods", Fails: true, For: time.Second})
		h.breaks("remove stormglass-fault-1-pods", errors.New("not found"))
		time.Sleep(30 * time.Second)
		h.breaks("remove stormglass-fault-1-pods", nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		lines := h.lines()
		same(t, "what was done last", lines[len(lines)-1:], "31s remove stormglass-fault-1-pods")
	})
}

// One that was refused does not come about: asking for its removal every two seconds
// would only be load.
func TestRefusedWebhookIsNotRemovedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("webhook stormglass-fault-1-pods", errors.New("forbidden"))
		if _, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultWebhook, Resource: "pods", Fails: true}); err == nil {
			t.Fatal("begun")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		same(t, "what was done", h.lines())
	})
}
