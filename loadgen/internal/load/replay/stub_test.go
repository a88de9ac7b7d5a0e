package replay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// stub is an API server with a few resources that records which objects exist.
type stub struct {
	config *rest.Config
	tracer *spans.Tracer // of the loads; nil: no request is traced

	mu      sync.Mutex
	objects map[string]bool // by path
	version int
	seen    []seen
	watches int // open
}

// seen is a request that the stub received.
type seen struct{ method, path, user, agent, body, contentType, parent string }

func (s seen) String() string { return s.method + " " + s.path }

const verbsOfAll = `"verbs":["get","list","watch","create","update","patch","delete","deletecollection"]`

func (s *stub) discovery(path string) string {
	resource := func(name, kind string, namespaced bool) string {
		return fmt.Sprintf(`{"name":%q,"kind":%q,"namespaced":%v,%s}`, name, kind, namespaced, verbsOfAll)
	}
	list := func(all ...string) string { return `{"resources":[` + strings.Join(all, ",") + `]}` }
	switch path {
	case "/api/v1":
		return list(resource("configmaps", "ConfigMap", true), resource("pods", "Pod", true), resource("nodes", "Node", false))
	case "/apis/coordination.k8s.io/v1":
		return list(resource("leases", "Lease", true))
	case "/apis/apps/v1":
		return list(resource("deployments", "Deployment", true))
	case "/apis/example.com/v1":
		return list(resource("widgets", "Widget", true))
	}
	return ""
}

func newStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{objects: map[string]bool{}, version: 100}
	s.config = stubapi.ServeHandler(t, http.HandlerFunc(s.serve))
	return s
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if text := s.discovery(r.URL.Path); text != "" {
		fmt.Fprint(w, text)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/apis/nosuch.io") {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.version++
	s.seen = append(s.seen, seen{
		r.Method, r.URL.RequestURI(), r.Header.Get("Impersonate-User"), r.Header.Get("User-Agent"), string(body), r.Header.Get("Content-Type"), r.Header.Get("traceparent"),
	})
	version := s.version
	code := s.apply(r, string(body))
	s.mu.Unlock()
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r)
		return
	}
	w.WriteHeader(code)
	token := ""
	if r.URL.Query().Get("limit") != "" {
		token = fmt.Sprintf(`,"continue":"token%d"`, version)
	}
	fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"%s},"items":[{"metadata":{"name":"node-0"}}]}`, version, token)
}

// apply executes a request on the objects and returns the status of the response. The caller holds mu.
func (s *stub) apply(r *http.Request, body string) int {
	path := strings.TrimSuffix(r.URL.Path, "/scale")
	dry := r.URL.Query().Get("dryRun") != ""
	collection := strings.HasSuffix(path, "s") // the names of replayed objects do not end with s
	switch {
	case r.Method == http.MethodPost:
		if strings.Contains(path, "/widgets") {
			return http.StatusUnprocessableEntity
		}
		_, rest, _ := strings.Cut(body, `"name":"`)
		name, _, _ := strings.Cut(rest, `"`)
		if i := strings.Index(body, `"metadata":`); i >= 0 {
			_, rest, _ = strings.Cut(body[i:], `"name":"`)
			name, _, _ = strings.Cut(rest, `"`)
		}
		switch path += "/" + name; {
		case s.objects[path]:
			return http.StatusConflict
		case !dry:
			s.objects[path] = true
		}
		return http.StatusCreated
	case collection:
		return http.StatusOK
	case strings.HasPrefix(path, "/api/v1/nodes/"):
		if strings.HasSuffix(path, "/node-0") {
			return http.StatusOK
		}
		return http.StatusNotFound
	case !s.objects[path]:
		return http.StatusNotFound
	case r.Method == http.MethodDelete:
		delete(s.objects, path)
	case strings.Contains(body, `"resourceVersion":"1"`):
		return http.StatusConflict
	}
	return http.StatusOK
}

// watch sends an event and stays open until the client leaves.
func (s *stub) watch(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}`)
	w.(http.Flusher).Flush()
	s.mu.Lock()
	s.watches++
	s.mu.Unlock()
	<-r.Context().Done()
	s.mu.Lock()
	s.watches--
	s.mu.Unlock()
}

func (s *stub) all() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.seen...)
}

func (s *stub) target() load.Target {
	return load.Target{
		Config:    rest.CopyConfig(s.config),
		Namespace: "storm", Labels: map[string]string{"stormglass.dev/run": "test"}, Seed: 1, Tracer: s.tracer,
	}
}

// newLoad returns a load of a recording with the defaults that a scenario's loader sets.
func newLoad(t *testing.T, s *stub, tr *recording.Recording, change func(*scenario.Load)) *Load {
	t.Helper()
	l := scenario.Load{
		Name: "tuesday", Kind: "replay", MaxInFlight: 1000, Connections: 1, Timeout: scenario.Duration(30 * time.Second), Namespaces: 1,
		Replayed: scenario.Replayed{Recorded: tr, Speed: 1, Copies: 1, OnMissing: "fail"},
	}
	if change != nil {
		change(&l)
	}
	r, err := New(s.target(), l)
	if err != nil {
		t.Fatal(err)
	}
	r.BeginPhase("storm", time.Now())
	return r
}

// prepared prepares a load and returns the requests that the stub receives after that.
func prepared(t *testing.T, s *stub, r *Load) (after func() []seen) {
	t.Helper()
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(s.all())
	return func() []seen { return s.all()[before:] }
}

// replayUntil runs a load until cond holds.
func replayUntil(t *testing.T, r *Load, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	limited, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for !cond() {
		if !apiclient.Pause(limited, time.Millisecond) {
			t.Errorf("no %s within a minute", what)
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}
