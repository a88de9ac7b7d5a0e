package traffic

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// stub is an API server for the ConfigMaps of one namespace whose behaviour is
// known exactly: TLS, HTTP/2, resource versions, watches that resume, and the
// faults that a test asks for.
type stub struct {
	*httptest.Server

	mu        sync.Mutex
	rv        uint64
	compacted uint64 // versions at or below it are gone
	objects   map[string]stubObject
	log       []stubEvent
	changed   chan struct{} // closed at the next change
	cut       chan struct{} // closed to end all watches
	watches   int           // requests seen
	patches   int
	seen      []string // method and path of all requests but watches

	// intercept answers in place of the stub if it returns true.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	// deliver turns an event into what watch number n really sends.
	deliver func(n int, e stubEvent) []stubEvent
	// inBand sends a 410 as an ERROR event rather than as a status.
	inBand bool
}

type stubObject struct {
	Metadata stubMetadata      `json:"metadata"`
	Data     map[string]string `json:"data,omitempty"`
}

type stubMetadata struct {
	Name            string            `json:"name,omitempty"`
	ResourceVersion string            `json:"resourceVersion"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

type stubEvent struct {
	kind   string
	rv     uint64
	object any
}

func (e stubEvent) line() []byte {
	b, err := json.Marshal(map[string]any{"type": e.kind, "object": e.object})
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

const stubPath = "/api/v1/namespaces/storm/configmaps"

// newStub starts a stub; setup changes it before it serves.
func newStub(t *testing.T, setup func(*stub)) *stub {
	t.Helper()
	s := &stub{
		rv: 100, objects: map[string]stubObject{},
		changed: make(chan struct{}), cut: make(chan struct{}),
	}
	if setup != nil {
		setup(s)
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// target is how loads reach the stub.
func (s *stub) target() Target {
	ca := s.TLS.Certificates[0].Certificate[0]
	return Target{
		Config:    &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pemOf(ca)}},
		Namespace: "storm", Seed: 1,
		Labels: map[string]string{"stormglass.dev/run": "test"},
	}
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watching := r.URL.Query().Get("watch") == "1"
	s.mu.Lock()
	intercept := s.intercept
	if !watching {
		s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	}
	s.mu.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	name, isObject := strings.CutPrefix(r.URL.Path, stubPath+"/")
	switch {
	case watching:
		s.watch(w, r)
	case r.URL.Path == stubPath && r.Method == http.MethodGet:
		s.list(w)
	case r.URL.Path == stubPath && r.Method == http.MethodPost:
		var o stubObject
		s.decode(r, &o)
		s.write(w, o.Metadata.Name, "ADDED", func(stubObject) stubObject { return o })
	case isObject && r.Method == http.MethodGet:
		s.write(w, name, "", nil)
	case isObject && r.Method == http.MethodPut:
		var o stubObject
		s.decode(r, &o)
		s.write(w, name, "MODIFIED", func(stubObject) stubObject { return o })
	case isObject && r.Method == http.MethodPatch:
		var p stubObject
		s.decode(r, &p)
		s.write(w, name, "MODIFIED", func(o stubObject) stubObject {
			if p.Metadata.Annotations != nil {
				o.Metadata.Annotations = p.Metadata.Annotations
			}
			o.Data = p.Data
			return o
		})
		s.mu.Lock()
		s.patches++
		s.mu.Unlock()
	case isObject && r.Method == http.MethodDelete:
		s.write(w, name, "DELETED", func(o stubObject) stubObject { return o })
	default:
		answer(w, http.StatusNotFound, status(http.StatusNotFound, "not found"))
	}
}

func (s *stub) decode(r *http.Request, into any) {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		panic(err)
	}
}

// write changes (or with kind "" only reads) an object and answers with it.
func (s *stub) write(w http.ResponseWriter, name, kind string, change func(stubObject) stubObject) {
	s.mu.Lock()
	o, exists := s.objects[name]
	switch {
	case kind == "ADDED" && exists:
		s.mu.Unlock()
		answer(w, http.StatusConflict, status(http.StatusConflict, "already exists"))
		return
	case kind != "ADDED" && !exists:
		s.mu.Unlock()
		answer(w, http.StatusNotFound, status(http.StatusNotFound, "not found"))
		return
	}
	if kind != "" {
		s.rv++
		o = change(o)
		o.Metadata.Name, o.Metadata.ResourceVersion = name, strconv.FormatUint(s.rv, 10)
		s.objects[name] = o
		if kind == "DELETED" {
			delete(s.objects, name)
		}
		s.append(stubEvent{kind, s.rv, o})
	}
	s.mu.Unlock()
	answer(w, http.StatusOK, o)
}

// append adds to the log of events. The lock is held.
func (s *stub) append(e stubEvent) {
	s.log = append(s.log, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// bookmark tells all watches the current version.
func (s *stub) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	object := map[string]any{"kind": "ConfigMap", "metadata": stubMetadata{ResourceVersion: strconv.FormatUint(s.rv, 10)}}
	s.append(stubEvent{"BOOKMARK", s.rv, object})
}

// end ends all watches that are open. With compact it forgets all versions up
// to now at the same moment, and each of them has to list again.
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

func (s *stub) list(w http.ResponseWriter) {
	s.mu.Lock()
	rv := s.rv
	var items []stubObject
	for _, o := range s.objects {
		items = append(items, o)
	}
	s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{
		"kind": "ConfigMapList", "items": items,
		"metadata": map[string]string{"resourceVersion": strconv.FormatUint(rv, 10)},
	})
}

func (s *stub) watch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil || r.URL.Query().Get("labelSelector") == "" || r.URL.Query().Get("allowWatchBookmarks") != "true" {
		answer(w, http.StatusBadRequest, status(http.StatusBadRequest, "not as client-go asks"))
		return
	}
	s.mu.Lock()
	n, gone, inBand, cut := s.watches, from < s.compacted, s.inBand, s.cut
	s.watches++
	s.mu.Unlock()
	if gone && !inBand {
		answer(w, http.StatusGone, status(http.StatusGone, "too old resource version"))
		return
	}
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	if gone {
		_, _ = w.Write(stubEvent{kind: "ERROR", object: status(http.StatusGone, "too old resource version")}.line())
		return
	}
	_ = flush()
	for next := 0; ; {
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
				if _, err := w.Write(e.line()); err != nil {
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

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func status(code int, message string) map[string]any {
	return map[string]any{"kind": "Status", "status": "Failure", "code": code, "message": message}
}

func (s *stub) count(of *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *of
}

func (s *stub) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func pemOf(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}

// applyUnanswered makes a patch without telling the client.
func (s *stub) applyUnanswered(r *http.Request) {
	var p stubObject
	s.decode(r, &p)
	nowhere := httptest.NewRecorder()
	s.write(nowhere, strings.TrimPrefix(r.URL.Path, stubPath+"/"), "MODIFIED", func(o stubObject) stubObject {
		o.Metadata.Annotations, o.Data = p.Metadata.Annotations, p.Data
		return o
	})
}
