package stubapi

import (
	"encoding/json"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resource is one that the stub serves.
type resource struct {
	group, version, name, kind string
	cluster                    bool // not namespaced
}

// resources are those that the load engine has manifests for, and what a
// simulated kubelet or a custom resource needs beside them.
var resources = []resource{
	{version: "v1", name: "configmaps", kind: "ConfigMap"},
	{version: "v1", name: "secrets", kind: "Secret"},
	{version: "v1", name: "services", kind: "Service"},
	{version: "v1", name: "serviceaccounts", kind: "ServiceAccount"},
	{version: "v1", name: "pods", kind: "Pod"},
	{version: "v1", name: "namespaces", kind: "Namespace", cluster: true},
	{version: "v1", name: "nodes", kind: "Node", cluster: true},
	{group: "coordination.k8s.io", version: "v1", name: "leases", kind: "Lease"},
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

// place is the target of a path: a collection, in one namespace or in all, or an
// object of it.
type place struct {
	resource        resource
	namespace, name string
}

// locate reads a path; false if it names nothing that is served.
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
		at.name = parts[1] // what follows is a subresource: the object stands for it
	}
	for _, r := range resources {
		if r.group == group && r.version == version && r.name == parts[0] {
			at.resource = r
			return at, true
		}
	}
	return place{}, false
}

// discover answers the paths of discovery.
func discover(path string) ([]byte, bool) {
	switch path {
	case "/version":
		return []byte(`{"major":"1","minor":"37","gitVersion":"v1.37.0-stub"}`), true
	case "/readyz", "/livez", "/healthz":
		return []byte("ok"), true
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
		if r.group != "" && path == "/apis/"+r.group {
			g := r.apiGroup()
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return encoded(g), true
		}
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

// encoded is JSON of what cannot fail to be.
func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
