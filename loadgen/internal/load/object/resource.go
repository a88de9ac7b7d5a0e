package object

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resource is a resource that the API server serves.
type Resource struct {
	asker      *asker
	name       string // plural with the group, such as deployments.apps
	root       string // path of the API version, such as /api/v1 or /apis/apps/v1
	plural     string
	apiVersion string
	kind       string
	namespaced bool
	verbs      []string
	// subresources maps each subresource to its verbs.
	subresources map[string][]string
}

// collection returns the path of the resource's objects in a namespace. "" means all namespaces.
func (r *Resource) collection(namespace string) string {
	if namespace == "" || !r.namespaced {
		return r.root + "/" + r.plural
	}
	return r.root + "/namespaces/" + url.PathEscape(namespace) + "/" + r.plural
}

// can returns an error if the API server does not support the verb for the resource or, if subresource is not empty,
// for the subresource.
func (r *Resource) can(verb, subresource string) error {
	if verb == "apply" {
		verb = "patch"
	}
	name, verbs := r.name, r.verbs
	if subresource != "" {
		name, verbs = r.name+"/"+subresource, r.subresources[subresource]
		if len(verbs) == 0 {
			return fmt.Errorf("the API server has no %s (of %s it offers %s)", name, r.name, strings.Join(slices.Sorted(maps.Keys(r.subresources)), ", "))
		}
	}
	if !slices.Contains(verbs, verb) {
		return fmt.Errorf("%s does not support the verb %s (the API server offers %s)", name, verb, strings.Join(verbs, ", "))
	}
	return nil
}

// resolve finds a resource by its name, such as "pods" or "deployments.apps", in the given apiVersion. An empty
// apiVersion means the group's preferred version.
func resolve(ctx context.Context, a *asker, name, apiVersion string) (*Resource, error) {
	r := &Resource{asker: a, name: name, apiVersion: apiVersion}
	var group string
	r.plural, group, _ = strings.Cut(name, ".")
	if apiVersion == "" && group != "" {
		var g metav1.APIGroup
		if err := discover(ctx, a, "/apis/"+group, name, &g); err != nil {
			return nil, err
		}
		r.apiVersion = g.PreferredVersion.GroupVersion
	}
	switch {
	case group != "":
		r.root = "/apis/" + r.apiVersion
	case apiVersion == "":
		r.root, r.apiVersion = "/api/v1", "v1"
	default:
		r.root = "/api/" + apiVersion
	}
	var list metav1.APIResourceList
	if err := discover(ctx, a, r.root, name, &list); err != nil {
		return nil, err
	}
	r.subresources = map[string][]string{}
	for _, found := range list.APIResources {
		if found.Name == r.plural {
			r.kind, r.namespaced, r.verbs = found.Kind, found.Namespaced, found.Verbs
		} else if sub, ok := strings.CutPrefix(found.Name, r.plural+"/"); ok {
			r.subresources[sub] = found.Verbs
		}
	}
	if r.kind == "" {
		return nil, unknownResource(name)
	}
	return r, nil
}

func discover(ctx context.Context, a *asker, path, name string, into any) error {
	r, err := a.ask(ctx, query{method: http.MethodGet, path: path})
	if r.status == http.StatusNotFound {
		return unknownResource(name)
	}
	if err := failed("discover", name, r, err); err != nil {
		return err
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		return fmt.Errorf("discover %s: response to GET %s: %w", name, path, err)
	}
	return nil
}

// UnknownError means that the API server does not serve a resource.
type UnknownError struct{ Resource string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the API server has no resource %q (write it in the plural, with its group, as `kubectl api-resources` lists it: pods, deployments.apps; or create its CustomResourceDefinition in setup or objects)", e.Resource)
}

func unknownResource(name string) error { return &UnknownError{name} }
