package stubapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// object is one version of an object. It never changes, except for its cached encodings.
type object struct {
	namespace, name string
	rv              uint64
	labels          labels.Set
	fields          map[string]any
	json            []byte
	forms           map[form][]byte // cached encodings, guarded by the store's lock
}

func (o *object) key() string { return o.namespace + "/" + o.name }

const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
	bookmark = "BOOKMARK"
)

// event is one change of an object, or a bookmark.
type event struct {
	kind   string
	object *object
	rv     uint64
	forms  map[form][]byte // cached encodings, guarded by the store's lock
}

// write returns the event in the encoding of a watch.
func (e *event) write(f form) []byte {
	b := e.forms[f]
	if b == nil {
		if e.forms == nil {
			e.forms = map[form][]byte{}
		}
		b = f.event(e.kind, f.object(e.object))
		e.forms[f] = b
	}
	return b
}

// store holds the objects and the history of their changes.
type store struct {
	mu        sync.Mutex
	rv        uint64
	compacted uint64 // oldest version from which a watch can start
	objects   map[resource]*collection
}

type collection struct {
	byKey   map[string]*object
	sorted  []*object // cached result of the method `all`; nil after a change
	history []*event
	watches map[*watch]struct{}
	// lists caches the responses to list requests at version listsAt, by request.
	lists   map[string][]byte
	listsAt uint64
}

// of returns the collection of a resource. The caller holds the lock.
func (s *store) of(r resource) *collection {
	c := s.objects[r]
	if c == nil {
		c = &collection{byKey: map[string]*object{}, watches: map[*watch]struct{}{}}
		s.objects[r] = c
	}
	return c
}

func (c *collection) all() []*object {
	if c.sorted == nil {
		c.sorted = make([]*object, 0, len(c.byKey))
		for _, o := range c.byKey {
			c.sorted = append(c.sorted, o)
		}
		slices.SortFunc(c.sorted, func(a, b *object) int { return strings.Compare(a.key(), b.key()) })
	}
	return c.sorted
}

// selector selects the objects of a list or watch.
type selector struct {
	namespace, name string
	labels          labels.Selector
	bound           bool // whether to select only pods that are bound to a node
}

func newSelector(at place, query url.Values) (selector, error) {
	s := selector{namespace: at.namespace, name: at.name}
	var err error
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return s, err
	}
	if text := query.Get("fieldSelector"); text == "spec.nodeName!=" {
		s.bound = true
	} else if text != "" {
		name, ok := strings.CutPrefix(text, "metadata.name=")
		if !ok {
			return s, fmt.Errorf("field selector %q is not supported (only metadata.name=NAME and spec.nodeName!=)", text)
		}
		s.name = name
	}
	return s, nil
}

func (s selector) matches(o *object) bool {
	return (s.namespace == "" || s.namespace == o.namespace) && (s.name == "" || s.name == o.name) &&
		(s.labels.Empty() || s.labels.Matches(o.labels)) && (!s.bound || o.nodeName() != "")
}

// nodeName returns the name of the node to which a pod is bound.
func (o *object) nodeName() string {
	name, _, _ := unstructured.NestedString(o.fields, "spec", "nodeName") // "" if not bound, or not a pod
	return name
}

// put stores fields as a new version of the object at a place, and sends a watch event of the type kind. For DELETED, it
// deletes the object. The caller holds the lock.
func (s *store) put(at place, kind string, fields map[string]any) *object {
	s.rv++
	u := unstructured.Unstructured{Object: fields}
	u.SetName(at.name)
	u.SetResourceVersion(strconv.FormatUint(s.rv, 10))
	if at.namespace != "" {
		u.SetNamespace(at.namespace)
	}
	if u.GetUID() == "" {
		u.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", s.rv)))
		u.SetCreationTimestamp(metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	o := &object{namespace: at.namespace, name: at.name, rv: s.rv, fields: fields, labels: u.GetLabels(), json: encoded(fields)}
	c := s.of(at.resource)
	c.sorted = nil
	if c.byKey[o.key()] = o; kind == deleted {
		delete(c.byKey, o.key())
	}
	s.publish(c, &event{kind: kind, object: o, rv: s.rv})
	return o
}

// publish sends an event to the watches and, unless the event is a bookmark, adds it to the history. The caller holds the lock.
func (s *store) publish(c *collection, e *event) {
	if e.kind != bookmark {
		c.history = append(c.history, e)
	}
	for w := range c.watches {
		w.send(e)
	}
}

// merged returns a deep copy of fields and applies a merge patch (RFC 7386) to the copy.
func merged(fields map[string]any, patch map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for k, v := range fields {
		if m, ok := v.(map[string]any); ok {
			v = merged(m, nil)
		}
		out[k] = v
	}
	for k, v := range patch {
		under, isMap := v.(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap:
			below, _ := out[k].(map[string]any)
			out[k] = merged(below, under)
		default:
			out[k] = v
		}
	}
	return out
}

// since returns the events after version rv. It returns false if the history no longer contains that version. The
// caller holds the lock.
func (s *store) since(c *collection, rv uint64) ([]*event, bool) {
	if rv < s.compacted {
		return nil, false
	}
	i := sort.Search(len(c.history), func(i int) bool { return c.history[i].rv > rv })
	return c.history[i:], true
}

// bookmarkOf returns a bookmark with the current version. If initial is true, the bookmark marks the end of the initial
// events of a WatchList. The caller holds the lock.
func (s *store) bookmarkOf(r resource, initial bool) *event {
	meta := map[string]any{"resourceVersion": strconv.FormatUint(s.rv, 10), "creationTimestamp": nil}
	if initial {
		meta["annotations"] = map[string]any{"k8s.io/initial-events-end": "true"}
	}
	fields := map[string]any{"kind": r.kind, "apiVersion": r.apiVersion(), "metadata": meta}
	b, _ := json.Marshal(fields) // cannot fail for strings and nil
	return &event{kind: bookmark, rv: s.rv, object: &object{rv: s.rv, fields: fields, json: b}}
}

var configMaps = resources[0]

// Fill creates the ConfigMaps PREFIX-0 to PREFIX-(n-1), each with the labels and a payload of size bytes.
func (s *Server) Fill(namespace, prefix string, n, size int, labels map[string]string) {
	some := map[string]any{}
	for k, v := range labels {
		some[k] = v
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	for i := range n {
		at := place{configMaps, namespace, fmt.Sprintf("%s-%d", prefix, i)}
		s.store.put(at, added, map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"labels": some},
			"data": map[string]any{"payload": strings.Repeat("x", size)},
		})
	}
}

// Touch updates an existing ConfigMap with a different payload of the same size, and returns the new resource version.
func (s *Server) Touch(namespace, name string) uint64 {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	old := s.store.of(configMaps).byKey[namespace+"/"+name]
	data, _ := old.fields["data"].(map[string]any)
	payload, _ := data["payload"].(string)
	text := fmt.Sprintf("%020d", s.store.rv)
	if len(payload) >= len(text) {
		payload = text + payload[len(text):]
	}
	return s.store.put(place{configMaps, namespace, name}, modified, merged(old.fields, map[string]any{
		"data": map[string]any{"payload": payload},
	})).rv
}
