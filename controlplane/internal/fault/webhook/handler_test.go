package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admission "k8s.io/api/admission/v1"

	"github.com/stormglass/stormglass/controlplane/control"
)

const aReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1"}}`

// post sends a review directly to the webhook's handler, without a network.
func post(ctx context.Context, w *Webhook, body string) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	w.handler().ServeHTTP(out, httptest.NewRequestWithContext(ctx, http.MethodPost, reviewPath, strings.NewReader(body)))
	return out
}

func wantAllowed(t *testing.T, out *httptest.ResponseRecorder) {
	t.Helper()
	var review admission.AdmissionReview
	if err := json.NewDecoder(out.Body).Decode(&review); err != nil || out.Code != http.StatusOK {
		t.Fatalf("response = %d, %v; want 200", out.Code, err)
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response == nil ||
		review.Response.UID != "u-1" || !review.Response.Allowed {
		t.Errorf("response = %+v %+v, want allowed", review.TypeMeta, review.Response)
	}
}

func TestSlowWebhookAllowsAfterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWebhook(nil, "", control.Fault{Delay: 3 * time.Second})
		start := time.Now()
		wantAllowed(t, post(t.Context(), w, aReview))
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("response after %s, want 3s", took)
		}
	})
}

func TestFailingWebhookFailsAfterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWebhook(nil, "", control.Fault{Delay: time.Second, Fails: true})
		start := time.Now()
		if out := post(t.Context(), w, aReview); out.Code != http.StatusInternalServerError || time.Since(start) != time.Second {
			t.Errorf("response %d after %s, want 500 after 1s", out.Code, time.Since(start))
		}
	})
}

func TestJitterIsRepeatableAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delays := func(seed int64) (all []time.Duration) {
			w := newWebhook(nil, "", control.Fault{Delay: time.Second, Jitter: time.Second / 2, Seed: seed})
			for range 20 {
				start := time.Now()
				post(t.Context(), w, aReview)
				all = append(all, time.Since(start))
			}
			return all
		}
		first, again, other := delays(1), delays(1), delays(2)
		differ := false
		for i, d := range first {
			if d < time.Second/2 || d > time.Second*3/2 {
				t.Errorf("delay = %s, want 0.5s to 1.5s", d)
			}
			if d != again[i] {
				t.Errorf("the same seed gave delays of %s and %s", d, again[i])
			}
			differ = differ || d != other[i]
		}
		if !differ {
			t.Error("two seeds gave the same delays")
		}
	})
}

func TestClearEndsDelayedReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWebhook(nil, "", control.Fault{Delay: time.Hour, Fails: true})
		start := time.Now()
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() { wantAllowed(t, post(t.Context(), w, aReview)) })
		}
		synctest.Wait()
		close(w.cleared)
		waiting.Wait()
		wantAllowed(t, post(t.Context(), w, aReview)) // a later review does not wait either
		if took := time.Since(start); took != 0 {
			t.Errorf("the reviews waited %s after Clear", took)
		}
	})
}

func TestReviewEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWebhook(nil, "", control.Fault{Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		post(ctx, w, aReview)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("the review ended after %s, want 10s", took)
		}
	})
}

// Each mutating webhook adds its annotation once, to any object.
func TestMutatingWebhookAddsItsAnnotation(t *testing.T) {
	w := newWebhook(nil, "", control.Fault{Mutates: true, Webhooks: 2})
	for object, want := range map[string]string{
		`{"metadata":{}}`: `[{"op":"add","path":"/metadata/annotations","value":{"stormglass.dev/webhook-1":"reviewed"}}]`,
		`{"metadata":{"annotations":{"stormglass.dev/webhook-0":"reviewed"}}}`: `[{"op":"add","path":"/metadata/annotations/stormglass.dev~1webhook-1","value":"reviewed"}]`,
		`{"metadata":{"annotations":{"stormglass.dev/webhook-1":"reviewed"}}}`: "",
	} {
		out := httptest.NewRecorder()
		body := strings.Replace(aReview, `"u-1"`, `"u-1","object":`+object, 1)
		w.handler().ServeHTTP(out, httptest.NewRequest(http.MethodPost, reviewPath+"/1", strings.NewReader(body)))
		var review admission.AdmissionReview
		if err := json.NewDecoder(out.Body).Decode(&review); err != nil || !review.Response.Allowed {
			t.Fatalf("response = %d, %v; want allowed", out.Code, err)
		}
		if string(review.Response.Patch) != want {
			t.Errorf("patch of %s = %s, want %s", object, review.Response.Patch, want)
		}
	}
}

func TestInvalidAdmissionReviewIsRefused(t *testing.T) {
	w := newWebhook(nil, "", control.Fault{Delay: time.Hour})
	for want, body := range map[string]string{
		"not an AdmissionReview": "{",
		"with a request":         `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`,
		"of admission.k8s.io/v1": strings.Replace(aReview, "/v1", "/v1beta1", 1),
		"too large":              `{"kind":"` + strings.Repeat("x", maxReview) + `"}`,
	} {
		if out := post(t.Context(), w, body); out.Code != http.StatusBadRequest || !strings.Contains(out.Body.String(), want) {
			t.Errorf("response = %d, %s; want 400 with %q", out.Code, out.Body, want)
		}
	}
	out := httptest.NewRecorder()
	w.handler().ServeHTTP(out, httptest.NewRequest(http.MethodGet, reviewPath, nil))
	if out.Code != http.StatusMethodNotAllowed {
		t.Errorf("response to GET = %d, want 405", out.Code)
	}
}

func readAll(t *testing.T, r io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		t.Error(err)
	}
	return b.Bytes()
}
