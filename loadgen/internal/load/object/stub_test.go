package object

import (
	"context"
	"encoding/json"
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
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// stub is an API server with a few resources that accepts all requests. A test handles the requests that it checks itself.
type stub struct {
	config *rest.Config
	// The stub calls answer first. If it returns false, the stub itself responds.
	answer func(w http.ResponseWriter, r *http.Request, body []byte) bool

	mu    sync.Mutex
	asked []string // method and path with its query
}

var discovery = map[string]string{
	"/api/v1": `{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","list","create","update","patch","delete","deletecollection"]},
		{"name":"pods","kind":"Pod","namespaced":true,"verbs":["get","list","create","update","patch","delete"]},
		{"name":"nodes","kind":"Node","verbs":["get","list"]}]}`,
	"/apis/coordination.k8s.io/v1": `{"resources":[{"name":"leases","kind":"Lease","namespaced":true,"verbs":["get","list","create","update","patch","delete"]}]}`,
	"/apis/apps":                   `{"preferredVersion":{"groupVersion":"apps/v1"}}`,
	"/apis/apps/v1":                `{"resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["get","list"]}]}`,
}

func newStub(t testing.TB, answer func(http.ResponseWriter, *http.Request, []byte) bool) *stub {
	t.Helper()
	s := &stub{answer: answer}
	s.config = stubapi.ServeHandler(t, http.HandlerFunc(s.serve))
	return s
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	if s.answer != nil && s.answer(w, r, body) {
		return
	}
	if text, ok := discovery[r.URL.Path]; ok && r.Method == http.MethodGet {
		fmt.Fprint(w, text)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/apis/nosuch") {
		refuse(w, 404, "not found")
		return
	}
	fmt.Fprint(w, `{"metadata":{"resourceVersion":"5"}}`)
}

// refuse responds with an error Status, as an API server does.
func refuse(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "message": message, "code": code})
}

// count returns the number of requests that begin with the given text.
func (s *stub) count(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, asked := range s.asked {
		if strings.HasPrefix(asked, prefix) {
			n++
		}
	}
	return n
}

func (s *stub) target() load.Target {
	return load.Target{
		Config:    rest.CopyConfig(s.config),
		Namespace: "storm", Labels: map[string]string{"stormglass.dev/run": "test"}, Seed: 1,
	}
}

// newLoad returns a load with the defaults that a scenario's loader sets.
func newLoad(change func(*scenario.Load)) scenario.Load {
	l := scenario.Load{Name: "load", Kind: "requests", Objects: 3, Namespaces: 1, Spread: "even", Size: 100, Timeout: scenario.Duration(time.Minute)}
	change(&l)
	operations := []*scenario.Operation{&l.Operation}
	for i := range l.Mix {
		operations = append(operations, &l.Mix[i])
	}
	for _, o := range operations {
		for field, value := range map[*string]string{&o.Resource: "configmaps", &o.Form: "object", &o.Encoding: "json", &o.Scope: "namespace"} {
			if *field == "" {
				*field = value
			}
		}
		if o.Weight == 0 {
			o.Weight = 1
		}
	}
	return l
}

// prepared returns a prepared operation that uses a stub.
func prepared(t *testing.T, s *stub, l scenario.Load) request.Operation {
	t.Helper()
	op, err := NewOperation(s.target(), l)
	must(t, err)
	must(t, op.Prepare(t.Context()))
	return op
}

// ask sends one arrival, which gets a status and the pages of a body as responses. It returns the requested paths.
func ask(t *testing.T, op request.Operation, n int64, status int, pages ...string) []string {
	t.Helper()
	r := &request.Request{N: n, Kind: op.KindOf(n)}
	if !op.Next(n, r) {
		return nil
	}
	var paths []string
	for i := 0; ; i++ {
		paths = append(paths, string(r.Path))
		outcome := load.Outcome(status)
		if op.Data(r, status, []byte(pages[i])) != nil || op.Data(r, status, nil) != nil {
			outcome = load.Malformed
		}
		if !op.Done(r, outcome, time.Now()) {
			return paths
		}
		if i == len(pages)-1 {
			t.Fatal("the operation requests a page after the last page")
		}
	}
}

// runBackground runs an operation's background for the duration of the test.
func runBackground(t *testing.T, op request.Operation) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		op.Background(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// await waits until cond holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !cond() {
		if !apiclient.Pause(ctx, time.Millisecond) {
			t.Fatalf("no %s within a minute", what)
		}
	}
}
