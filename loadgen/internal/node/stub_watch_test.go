package node

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// tell sends an event to the watches that select it. The caller holds mu.
func (s *stub) tell(kind string, p *corev1.Pod) {
	for w := range s.watches {
		if w.resource == "pods" && w.wants(p) {
			w.events <- frame(kind, "Pod", p)
		}
	}
}

func (w *stubWatch) wants(p *corev1.Pod) bool {
	return w.selector == "spec.nodeName="+p.Spec.NodeName || w.selector == "spec.nodeName!="
}

func (s *stub) watch(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	q := r.URL.Query()
	sw := &stubWatch{resource: parts[len(parts)-1], selector: q.Get("fieldSelector"), events: make(chan []byte, 1000), kill: make(chan struct{})}
	if s.forgetful && sw.selector == "spec.nodeName!=" {
		sw.events = make(chan []byte, 1<<20) // all pods of a benchmark
	}
	initial := q.Get("sendInitialEvents") == "true"
	if initial && s.noWatchList {
		refuse(w, 422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden")
		return
	}
	s.update(func() {
		s.watches[sw] = true
		if !initial {
			return
		}
		for _, name := range sortedKeys(s.pods) {
			if p := s.pods[name]; sw.resource == "pods" && sw.wants(p) {
				sw.events <- frame("ADDED", "Pod", p)
			}
		}
		end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}
		sw.events <- frame("BOOKMARK", "Pod", end)
	})
	defer s.update(func() { delete(s.watches, sw) })
	w.Header().Set("Content-Type", protobuf.WatchType)
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	for {
		select {
		case e := <-sw.events:
			if _, err := w.Write(e); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			s.update(func() {}) // wakes waiters for its sending
		case <-sw.kill:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// open returns the watches of a resource. The caller holds the lock.
func (s *stub) open(resource string) []*stubWatch {
	var out []*stubWatch
	for w := range s.watches {
		if w.resource == resource {
			out = append(out, w)
		}
	}
	return out
}

func (s *stub) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, p := range s.pods {
		if r.URL.Query().Get("fieldSelector") == "spec.nodeName="+p.Spec.NodeName {
			l.Items = append(l.Items, *p)
		}
	}
	s.mu.Unlock()
	reply(w, 200, "v1", "PodList", l)
}

func (s *stub) decode(body []byte, into interface{ Unmarshal([]byte) error }) {
	if err := decode(body, into); err != nil {
		s.t.Errorf("a request's body is not protobuf: %v", err)
	}
}

func reply(w http.ResponseWriter, code int, version, kind string, o marshaler) {
	body, err := encode(version, kind, o)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", protobuf.ContentType)
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	reply(w, code, "v1", "Status", &metav1.Status{Status: "Failure", Code: int32(code), Reason: reason, Message: message})
}

// frame returns a watch event as an API server writes it.
func frame(kind, objectKind string, o marshaler) []byte {
	body, err := encode("v1", objectKind, o)
	if err != nil {
		panic(err)
	}
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: body}}
	data, err := e.Marshal()
	if err != nil {
		panic(err)
	}
	var out bytes.Buffer
	_ = binary.Write(&out, binary.BigEndian, uint32(len(data)))
	out.Write(data)
	return out.Bytes()
}
