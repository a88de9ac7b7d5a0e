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
			t.Errorf("serves(%s) = %v, %v; want %v", resource, got, err, want)
		}
	}
	if _, err := a.serves(t.Context(), "things.broken.example.com"); err == nil {
		t.Error("serves accepted an invalid response")
	}
	server.Close()
	if _, err := a.serves(t.Context(), "pods"); err == nil {
		t.Error("serves returned no error without an API server")
	}
}

// Begin refuses a webhook that the API server would never call, and does not register it.
func TestWebhookOnUnservedResourceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		f := control.Fault{Kind: control.FaultWebhook, Resource: "deployments", Fails: true}
		h.breaks("serves deployments", errNotServed)
		_, err := m.Begin(t.Context(), f)
		checked := m.Check(t.Context(), f)
		var invalid *control.InvalidFault
		if !errors.As(err, &invalid) || checked == nil || checked.Error() != err.Error() || !strings.HasPrefix(err.Error(), "resource: the API server does not serve deployments, or does not allow creating them (") {
			t.Errorf("Begin = %v\nCheck = %v\nwant the same error about the resource", err, checked)
		}
		h.breaks("serves deployments", errors.New("connection refused"))
		if _, err := m.Begin(t.Context(), f); err == nil || err.Error() != "webhook cannot begin: look up deployments at the API server: connection refused" {
			t.Errorf("Begin without an API server = %v, want the error of the request", err)
		}
		if len(h.lines()) > 0 {
			t.Errorf("Begin made changes: %q", h.lines())
		}
	})
}

// If the API server does not respond when the webhook should be removed, the manager tries again.
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
			t.Errorf("status = %+v, want an ended fault", s)
		}
		if trace := h.lines(); len(trace) != 2 || !strings.Contains(trace[0], "stormglass-fault-1-deployments-apps on deployments.apps") {
			t.Errorf("steps = %v, want start and removal of the webhook", trace)
		}
	})
}

// A registration that Start gave up may still take effect. The manager then removes it.
func TestWebhookRegisteredLateIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("webhook stormglass-fault-1-pods", fmt.Errorf("request timed out: %w", webhook.ErrUncertain))
		h.breaks("remove stormglass-fault-1-pods", errors.New("not found"))
		if _, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultWebhook, Resource: "pods", Fails: true}); err == nil {
			t.Fatal("Begin returned no error")
		}
		time.Sleep(59 * time.Second)
		h.breaks("remove stormglass-fault-1-pods", nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		same(t, "what was done", h.lines(), "1m0s remove stormglass-fault-1-pods")
	})
}

// A registration that got no response and was repeated may also take effect later.
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

// A refused registration never takes effect, so the manager must not look for it every two seconds.
func TestRefusedWebhookIsNotRemovedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("webhook stormglass-fault-1-pods", errors.New("forbidden"))
		if _, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultWebhook, Resource: "pods", Fails: true}); err == nil {
			t.Fatal("Begin returned no error")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		same(t, "what was done", h.lines())
	})
}
