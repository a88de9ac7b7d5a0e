package workload

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// stub is an API server with responses from the test.
type stub struct {
	t      *testing.T
	server *httptest.Server

	mu sync.Mutex
	// pods are the responses to LISTs of pods, in order. The last one is repeated.
	pods []answer
	// patched is the response to every PATCH after the responses in trouble.
	patched answer
	trouble []answer
	seen    []request
	watches *stubapi.Watches // on pods
}

type answer struct {
	status int
	body   runtime.Object
}

type request struct{ method, path, query, contentType, body string }

func newStub(t *testing.T) *stub {
	s := &stub{t: t, watches: stubapi.NewWatches(t), pods: []answer{{200, podList("10")}}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func podList(version string, pods ...*corev1.Pod) *corev1.PodList {
	l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, p := range pods {
		l.Items = append(l.Items, *p)
	}
	return l
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	pods := strings.HasSuffix(r.URL.Path, "/pods")
	watch := r.URL.Query().Get("watch") == "true"
	s.mu.Lock()
	s.seen = append(s.seen, request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), string(body)})
	var a answer
	switch {
	case r.Method == http.MethodDelete:
		a = answer{200, &metav1.Status{Status: "Success"}}
	case r.Method == http.MethodPatch && len(s.trouble) > 0:
		a, s.trouble = s.trouble[0], s.trouble[1:]
	case r.Method == http.MethodPatch:
		a = s.patched
	case pods && !watch:
		a = s.pods[0]
		if len(s.pods) > 1 {
			s.pods = s.pods[1:]
		}
	case strings.HasSuffix(r.URL.Path, "/nodes"):
		a = answer{200, &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}}
	default:
		a = answer{200, &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}}
	}
	s.mu.Unlock()
	switch {
	case watch && pods:
		s.watches.Serve(w, r, protobuf.WatchType)
		return
	case watch:
		s.watches.ServeSilent(w, r, protobuf.WatchType)
		return
	}
	w.Header().Set("Content-Type", protobuf.ContentType)
	w.WriteHeader(a.status)
	_, _ = w.Write(encoded(s.t, a.body))
}

// workload returns a workload that uses the stub as its API server.
func (s *stub) workload() *Workload {
	s.t.Helper()
	w, err := New(&rest.Config{Host: s.server.URL}, Options{
		Namespace: "ns", Labels: map[string]string{"run": "r"}, Retry: time.Millisecond,
		NodeSelector: map[string]string{"run": "r"},
		Tolerations:  []corev1.Toleration{{Key: "simulated", Operator: "Exists", Effect: "NoSchedule"}},

		DaemonTolerations: []corev1.Toleration{{Key: "pool", Operator: "Exists"}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// running returns a workload that runs until the test ends.
func (s *stub) running() *Workload {
	s.t.Helper()
	w := s.workload()
	stubapi.RunBeside(s.t, w.Run)
	return w
}

func (s *stub) watch() *stubapi.OpenWatch { return s.watches.Next() }

func (s *stub) requests(method string) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []request
	for _, r := range s.seen {
		if r.method == method {
			out = append(out, r)
		}
	}
	return out
}

// await waits until cond returns true. If it never does, the test hangs, and its timeout shows where.
func await(t *testing.T, w *Workload, cond func() bool) {
	t.Helper()
	if err := w.Wait(t.Context(), cond); err != nil {
		t.Fatal(err)
	}
}
