package stubapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

type response struct {
	status int
	body   []byte
}

// execute executes a request other than a watch.
func (s *Server) execute(st *stream, at place, query url.Values) response {
	f := formOf(st.accept, at.resource)
	refuse := func(code int, reason metav1.StatusReason, format string, args ...any) response {
		return response{code, f.status(code, reason, fmt.Sprintf(format, args...))}
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	c := s.store.of(at.resource)
	if st.request.Method == http.MethodGet && at.name == "" {
		return s.list(f, c, at, query)
	}
	var fields map[string]any
	if m := st.request.Method; m == http.MethodPost || m == http.MethodPut || m == http.MethodPatch {
		var err error
		if fields, err = s.readBody(at, st); err != nil {
			return refuse(400, metav1.StatusReasonBadRequest, "%v", err)
		}
	}
	meta, _ := fields["metadata"].(map[string]any)
	if st.request.Method == http.MethodPost {
		at.name, _ = meta["name"].(string)
	}
	old := c.byKey[at.namespace+"/"+at.name]
	apply := strings.HasPrefix(st.contentType, "application/apply-patch")
	switch {
	case st.request.Method == http.MethodPost && old != nil:
		return refuse(409, metav1.StatusReasonAlreadyExists, "%s %q already exists", at.resource.name, at.name)
	case st.request.Method == http.MethodPost, old == nil && apply:
		return response{201, f.object(s.store.put(at, added, fields))}
	case old == nil:
		return refuse(404, metav1.StatusReasonNotFound, "%s %q not found", at.resource.name, at.name)
	}
	switch st.request.Method {
	case http.MethodGet:
		return response{200, f.object(old)}
	case http.MethodDelete:
		s.store.put(at, deleted, merged(old.fields, nil))
		return refuse(200, "", "")
	}
	if rv, _ := meta["resourceVersion"].(string); rv != "" && rv != strconv.FormatUint(old.rv, 10) {
		return refuse(409, metav1.StatusReasonConflict, "%s %q has been modified", at.resource.name, at.name)
	}
	if st.request.Method == http.MethodPut {
		before, _ := old.fields["metadata"].(map[string]any)
		fields = merged(fields, map[string]any{"metadata": map[string]any{
			"uid": before["uid"], "creationTimestamp": before["creationTimestamp"],
		}})
	} else {
		fields = merged(old.fields, fields)
	}
	return response{200, f.object(s.store.put(at, modified, fields))}
}

func (s *Server) readBody(at place, st *stream) (map[string]any, error) {
	body := st.body
	if st.request.Method == http.MethodPatch {
		switch content, _, _ := strings.Cut(st.contentType, ";"); content {
		case "application/merge-patch+json", "application/strategic-merge-patch+json":
		case "application/apply-patch+yaml":
			var err error
			if body, err = yaml.YAMLToJSON(body); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("the stub does not support patches of type %q", content)
		}
	}
	return fieldsOf(at.resource, st.contentType, body)
}

func (s *Server) list(f form, c *collection, at place, query url.Values) response {
	sel, err := newSelector(at, query)
	if err != nil {
		return response{400, f.status(400, metav1.StatusReasonBadRequest, err.Error())}
	}
	after, _ := base64.RawURLEncoding.DecodeString(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	key := fmt.Sprint(f, sel.namespace, " ", sel.name, " ", query.Encode())
	if b := c.lists[key]; b != nil && c.listsAt == s.store.rv {
		return response{200, b}
	}
	var some []*object
	var next string
	left := 0
	for _, o := range c.all() {
		if !sel.matches(o) || len(after) > 0 && o.key() <= string(after) {
			continue
		}
		if limit > 0 && len(some) == limit {
			next = base64.RawURLEncoding.EncodeToString([]byte(some[limit-1].key()))
			left++
			continue
		}
		some = append(some, o)
	}
	b := f.list(at.resource, some, s.store.rv, next, left)
	if c.listsAt != s.store.rv || c.lists == nil {
		c.lists, c.listsAt = map[string][]byte{}, s.store.rv
	}
	c.lists[key] = b
	return response{200, b}
}

type resource struct {
	group, version, name, kind string
	cluster                    bool // whether the resource is cluster-scoped
}

// resources lists the resources for which the load engine has manifests, the resources that simulated kubelets use, and
// a custom resource.
var resources = []resource{
	{version: "v1", name: "configmaps", kind: "ConfigMap"},
	{version: "v1", name: "secrets", kind: "Secret"},
	{version: "v1", name: "services", kind: "Service"},
	{version: "v1", name: "serviceaccounts", kind: "ServiceAccount"},
	{version: "v1", name: "pods", kind: "Pod"},
	{version: "v1", name: "namespaces", kind: "Namespace", cluster: true},
	{version: "v1", name: "nodes", kind: "Node", cluster: true},
	{group: "coordination.k8s.io", version: "v1", name: "leases", kind: "Lease"},
	{group: "storage.k8s.io", version: "v1", name: "csinodes", kind: "CSINode", cluster: true},
	{group: "load.stormglass.dev", version: "v1", name: "widgets", kind: "Widget"},
}

func (r resource) apiVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

func (r resource) root() string {
	if r.group == "" {
		return "/api/" + r.version
	}
	return "/apis/" + r.group + "/" + r.version
}

// place is the target of a request path: one object, or a collection in one namespace or in all namespaces.
type place struct {
	resource        resource
	namespace, name string
}

// locate parses a request path, and reports whether the stub serves it.
func locate(path string) (place, bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, p := range parts {
		if text, err := url.PathUnescape(p); err == nil {
			parts[i] = text
		}
	}
	var group, version string
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return place{}, false
	}
	var at place
	if len(parts) >= 3 && parts[0] == "namespaces" {
		at.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		at.name = parts[1] // the stub handles a request to a subresource like a request to the object
	}
	for _, r := range resources {
		if r.group == group && r.version == version && r.name == parts[0] {
			at.resource = r
			return at, true
		}
	}
	return place{}, false
}

// discover returns the body of the response to a discovery request of client-go, and reports whether path is a
// discovery path.
func discover(path string) ([]byte, bool) {
	switch path {
	case "/api":
		return encoded(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}), true
	case "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, r := range resources {
			if r.group != "" {
				list.Groups = append(list.Groups, r.apiGroup())
			}
		}
		return encoded(list), true
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, r := range resources {
		if path == r.root() {
			list.GroupVersion = r.apiVersion()
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.name, SingularName: strings.ToLower(r.kind), Kind: r.kind, Namespaced: !r.cluster,
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	return encoded(list), len(list.APIResources) > 0
}

func (r resource) apiGroup() metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: r.apiVersion(), Version: r.version}
	return metav1.APIGroup{Name: r.group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

// encoded returns v as JSON. It panics if v cannot be encoded.
func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
