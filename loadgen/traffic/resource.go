package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resolve finds the path of a resource's collection, written as "pods" or
// "deployments.apps", in the group's preferred version, by discovery.
func resolve(ctx context.Context, c *client, resource, namespace string) (string, error) {
	name, group, _ := strings.Cut(resource, ".")
	path := "/api/v1"
	if group != "" {
		var g metav1.APIGroup
		if err := discover(ctx, c, "/apis/"+group, resource, &g); err != nil {
			return "", err
		}
		path = "/apis/" + g.PreferredVersion.GroupVersion
	}
	var list metav1.APIResourceList
	if err := discover(ctx, c, path, resource, &list); err != nil {
		return "", err
	}
	for _, r := range list.APIResources {
		if r.Name != name {
			continue
		}
		if r.Namespaced && namespace != "" {
			path += "/namespaces/" + url.PathEscape(namespace)
		}
		return path + "/" + name, nil
	}
	return "", unknownResource(resource)
}

func discover(ctx context.Context, c *client, path, resource string, into any) error {
	status, answer, err := c.ask(ctx, http.MethodGet, c.url(path, nil), "", nil)
	switch {
	case err != nil:
		return fmt.Errorf("discover %s: %w", resource, err)
	case status == http.StatusNotFound:
		return unknownResource(resource)
	case !Outcome(status).Success():
		return statusError("discover", resource, status, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("discover %s: answer of GET %s: %w", resource, path, err)
	}
	return nil
}

func unknownResource(resource string) error {
	return fmt.Errorf("the API server has no resource %q (write it in the plural, with its group, as `kubectl api-resources` lists it: pods, deployments.apps)", resource)
}

// namespaced is the path of a collection in one namespace, from its path over
// all of them.
func namespaced(path, namespace string) string {
	i := strings.LastIndex(path, "/")
	return path[:i] + "/namespaces/" + url.PathEscape(namespace) + path[i:]
}
