package workload

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Do retries a request while the control plane recovers from a fault. It does not retry a request that the API server
// refused.
func TestActionIsRetriedThroughFault(t *testing.T) {
	refuse := func(code int32) answer {
		return answer{int(code), &metav1.Status{Status: "Failure", Code: code, Message: "not now"}}
	}
	deploy := scenario.Action{Kind: "deploy", Name: "web", Replicas: 3}
	for name, c := range map[string]struct {
		trouble  []answer
		patience time.Duration
		asked    int
		want     string
	}{
		"it comes back": {[]answer{refuse(503), refuse(500), refuse(504)}, time.Minute, 4, ""},
		"it says no":    {[]answer{refuse(422)}, time.Minute, 1, "not now"},
		"no RBAC yet":   {[]answer{refuse(401), refuse(403)}, time.Minute, 3, ""},
		"no fault":      {[]answer{refuse(503)}, 0, 1, "not now"},
		"no rights":     {[]answer{refuse(403)}, 0, 1, "not now"},
	} {
		s := newStub(t)
		s.patched, s.trouble = answer{200, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}}, c.trouble
		w := s.workload()
		w.options.Patience = c.patience
		err := w.Do(t.Context(), deploy)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if n := len(s.requests(http.MethodPatch)); n != c.asked {
			t.Errorf("%s: %d requests, want %d", name, n, c.asked)
		}
	}
	// No server listens, so Do gives up when the patience is over.
	w, err := New(&rest.Config{Host: "https://127.0.0.1:1"}, Options{
		Namespace: "ns", Labels: map[string]string{"run": "r"}, Retry: time.Millisecond, Patience: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := w.Do(t.Context(), deploy); err == nil || !transient(err) || time.Since(began) < 20*time.Millisecond {
		t.Errorf("Do returned after %s: %v", time.Since(began), err)
	}
}
