package follow

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

// stub is an API server whose responses the test sets.
type stub struct {
	t      *testing.T
	server *httptest.Server

	mu sync.Mutex
	// lists are the responses to LISTs by path, in order. The last one answers all further LISTs.
	lists map[string][]answer
	// core and apps contain the resources of the core group and of apps/v1, by name. The value is true if they are
	// namespaced.
	core, apps map[string]bool
	asked      []string // method, path and query of each request
	watches    *stubapi.Watches
}

type answer struct {
	status int
	body   any
}

func newStub(t *testing.T) *stub {
	s := &stub{
		t: t, watches: stubapi.NewWatches(t), lists: map[string][]answer{},
		core: map[string]bool{"pods": true, "nodes": false, "services": true}, apps: map[string]bool{"deployments": true},
	}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// named returns an object of the run.
func named(name, version string, more ...any) condition.Object {
	o := condition.Object{"metadata": map[string]any{"name": name, "namespace": "ns", "uid": "uid-" + name, "resourceVersion": version}}
	for i := 0; i+1 < len(more); i += 2 {
		o[more[i].(string)] = more[i+1]
	}
	return o
}

func podOf(name, version, phase string) condition.Object {
	return named(name, version, "status", map[string]any{"phase": phase})
}

func list(version string, items ...condition.Object) answer {
	if items == nil {
		items = []condition.Object{}
	}
	return answer{200, map[string]any{"metadata": map[string]any{"resourceVersion": version}, "items": items}}
}

func event(kind string, o condition.Object) string {
	text, err := json.Marshal(map[string]any{"type": kind, "object": o})
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery)
	if r.URL.Query().Get("watch") == "true" {
		s.mu.Unlock()
		s.watches.Serve(w, r, "application/json")
		return
	}
	a := s.answer(r.URL.Path)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

func (s *stub) answer(path string) answer {
	resources := func(all map[string]bool) answer {
		var items []map[string]any
		for name, namespaced := range all {
			items = append(items, map[string]any{"name": name, "namespaced": namespaced, "verbs": []string{"list", "watch"}})
		}
		return answer{200, map[string]any{"resources": items}}
	}
	switch path {
	case "/api/v1":
		return resources(s.core)
	case "/apis/apps":
		return answer{200, map[string]any{"preferredVersion": map[string]any{"groupVersion": "apps/v1"}}}
	case "/apis/apps/v1":
		return resources(s.apps)
	}
	all := s.lists[path]
	if len(all) == 0 {
		return answer{404, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}}
	}
	if len(all) > 1 {
		s.lists[path] = all[1:]
	}
	return all[0]
}

func (s *stub) set(path string, answers ...answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[path] = answers
}

// count returns the number of requests that begin with a string.
func (s *stub) count(begin string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if strings.HasPrefix(a, begin) {
			n++
		}
	}
	return n
}

func (s *stub) watch() *stubapi.OpenWatch { return s.watches.Next() }

// follower returns a Follower that uses the stub and has not started.
func (s *stub) follower(o Options) *Follower {
	s.t.Helper()
	o.Namespaces, o.Selector, o.Retry = []string{"ns"}, "run=r", time.Millisecond
	f, err := New(&rest.Config{Host: s.server.URL}, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// running returns a Follower that runs until the test ends.
func (s *stub) running(o Options) *Follower {
	s.t.Helper()
	f := s.follower(o)
	stubapi.RunBeside(s.t, f.Run)
	return f
}

func conditions(t *testing.T, texts ...string) map[string]*condition.Condition {
	t.Helper()
	all := map[string]*condition.Condition{}
	for i, text := range texts {
		c, err := condition.Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("p%d", i)] = c
	}
	return all
}
