package watch

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// stub is an API server for ConfigMaps whose behaviour is known exactly: TLS, HTTP/2, versions, watches that resume,
// WatchLists, both encodings, and the faults that a test requests.
type stub struct {
	*httptest.Server

	mu        sync.Mutex
	rv        uint64
	compacted uint64 // versions at or below it are gone
	objects   map[string]*corev1.ConfigMap
	log       []stubEvent
	changed   chan struct{} // closed at the next change
	cut       chan struct{} // closed to end all watches
	watches   int           // requests seen
	lists     int
	patches   int
	conns     map[string]int // watches opened by each connection
	accepted  string         // by the last watch
	queries   []string       // of watches and lists

	// intercept responds in place of the stub if it returns true.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	// deliver returns the events that watch number n sends instead of an event.
	deliver func(n int, e stubEvent) []stubEvent
	// inBand sends a 410 as an ERROR event rather than as a status.
	inBand bool
	// noWatchList refuses sendInitialEvents.
	noWatchList bool
}

type stubEvent struct {
	kind   string
	rv     uint64
	object runtime.Object
}

func (e stubEvent) encode(t testing.TB, binary bool) []byte {
	if binary {
		return protoEventOf(t, e.kind, e.object.(marshaler))
	}
	b, err := json.Marshal(map[string]any{"type": e.kind, "object": e.object})
	if err != nil {
		t.Error(err)
	}
	return append(b, '\n')
}

const stubPath = "/api/v1/namespaces/storm/configmaps"

// newStub starts a stub. setup may change it before it serves.
func newStub(t *testing.T, setup func(*stub)) *stub {
	t.Helper()
	s := &stub{
		rv: 100, objects: map[string]*corev1.ConfigMap{}, conns: map[string]int{},
		changed: make(chan struct{}), cut: make(chan struct{}),
	}
	if setup != nil {
		setup(s)
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(t, w, r) }))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 5}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// target returns the target with which loads reach the stub.
func (s *stub) target() load.Target {
	ca := pemOf(s.TLS.Certificates[0].Certificate[0])
	return load.Target{
		Config:    &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}},
		Namespace: "storm", Seed: 1,
	}
}

func (s *stub) serve(t *testing.T, w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	intercept := s.intercept
	if r.Method == http.MethodGet {
		s.queries = append(s.queries, r.URL.RawQuery)
	}
	s.mu.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	name, isObject := strings.CutPrefix(r.URL.Path, stubPath+"/")
	switch {
	case query.Get("watch") == "true":
		s.watch(t, w, r)
	case r.URL.Path == stubPath && r.Method == http.MethodGet:
		s.list(t, w, r)
	case isObject && r.Method == http.MethodPatch:
		var p metav1.PartialObjectMetadata
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Errorf("patch: %v", err)
		}
		answer := s.change(name, "MODIFIED", p.Annotations)
		s.mu.Lock()
		s.patches++
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	default:
		refuse(w, http.StatusNotFound, "not found")
	}
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(&metav1.Status{Code: int32(code), Message: message})
}

// change changes an object and returns its new state.
func (s *stub) change(name, kind string, annotations map[string]string) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "storm", ResourceVersion: strconv.FormatUint(s.rv, 10), Annotations: annotations,
	}}
	s.objects[name] = o
	s.append(stubEvent{kind, s.rv, o})
	return o
}

// append adds to the log of events. The lock is held.
func (s *stub) append(e stubEvent) {
	s.log = append(s.log, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// bookmark sends the current version to all watches.
func (s *stub) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	s.append(stubEvent{"BOOKMARK", s.rv, version(s.rv, nil)})
}

func version(rv uint64, annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(rv, 10), Annotations: annotations}}
}

// end ends all open watches. If compact is set, it also forgets all versions up to now, so that each watch must list again.
func (s *stub) end(compact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if compact {
		s.rv++
		s.compacted = s.rv
	}
	close(s.cut)
	s.cut = make(chan struct{})
}

// loseConnections closes all connections, one after the other. A watch that is resumed on a connection that is closed
// next gets no response there, so that each watch is resumed once.
func (s *stub) loseConnections() {
	s.mu.Lock()
	lost := maps.Clone(s.conns)
	s.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		going := isWatch(r) && lost[r.RemoteAddr] > 0
		if going {
			<-r.Context().Done()
		}
		return going
	}
	s.mu.Unlock()
	s.CloseClientConnections()
}

func (s *stub) list(t *testing.T, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(s.rv, 10)}}
	for _, o := range s.objects {
		list.Items = append(list.Items, *o)
	}
	if strings.HasPrefix(r.Header.Get("Accept"), protobuf.ContentType) {
		_, _ = w.Write(enveloped(t, list))
		return
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (s *stub) watch(t *testing.T, w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	initial := query.Get("sendInitialEvents") == "true"
	from, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	if err != nil && !initial || query.Get("labelSelector") == "" || query.Get("allowWatchBookmarks") != "true" || seconds < 300 || seconds > 600 {
		refuse(w, http.StatusNotFound, "not as client-go asks")
		return
	}
	if initial && s.noWatchList {
		refuse(w, http.StatusUnprocessableEntity, "sendInitialEvents is forbidden")
		return
	}
	s.mu.Lock()
	n, gone, inBand, cut, next := s.watches, from < s.compacted && !initial, s.inBand, s.cut, 0
	s.watches++
	s.conns[r.RemoteAddr]++
	s.accepted = r.Header.Get("Accept")
	var state []stubEvent
	if initial {
		for _, o := range s.objects {
			state = append(state, stubEvent{"ADDED", 0, o})
		}
		state = append(state, stubEvent{"BOOKMARK", s.rv, version(s.rv, map[string]string{endAnnotation: "true"})})
		from, next = s.rv, len(s.log)
	}
	s.mu.Unlock()
	if gone && !inBand {
		refuse(w, http.StatusGone, "too old resource version")
		return
	}
	binary := strings.HasPrefix(r.Header.Get("Accept"), protobuf.ContentType)
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	if gone {
		_, _ = w.Write(stubEvent{kind: "ERROR", object: &metav1.Status{Code: http.StatusGone}}.encode(t, binary))
		return
	}
	for _, e := range state {
		_, _ = w.Write(e.encode(t, binary))
	}
	_ = flush()
	for {
		s.mu.Lock()
		events, changed, ended := s.log[next:], s.changed, s.cut != cut
		next = len(s.log)
		s.mu.Unlock()
		if ended {
			return
		}
		for _, e := range events {
			if e.rv <= from {
				continue
			}
			sent := []stubEvent{e}
			if s.deliver != nil {
				sent = s.deliver(n, e)
			}
			for _, e := range sent {
				if _, err := w.Write(e.encode(t, binary)); err != nil {
					return
				}
			}
		}
		_ = flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// locked returns the result of f, called with the stub's lock held.
func locked[T any](s *stub, read func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return read()
}

func (s *stub) count(of *int) int { return locked(s, func() int { return *of }) }

// serveUnanswered executes a patch and sends no response.
func (s *stub) serveUnanswered(t *testing.T, r *http.Request) {
	var p metav1.PartialObjectMetadata
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		t.Errorf("patch: %v", err)
	}
	s.change(strings.TrimPrefix(r.URL.Path, stubPath+"/"), "MODIFIED", p.Annotations)
}

func pemOf(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}
