package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

// resolve returns the API paths of the objects in a set. For cluster-scoped objects, it also returns the label selector
// of the run's objects. If the API server will serve the resource only later, resolve waits.
func (f *Follower) resolve(ctx context.Context, of condition.Set) (paths []string, selector string, err error) {
	for failures := 1; ; failures++ {
		root, r, err := f.discover(ctx, of.Resource)
		plural, _, _ := strings.Cut(of.Resource, ".")
		_, missing := err.(missingError)
		switch {
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		case missing && (f.options.Later == nil || !f.options.Later(of.Resource)), refused(err):
			return nil, "", err
		case err != nil:
			f.change(func() { f.sets[of].absent = missing })
			apiclient.Pause(ctx, f.backoff().Wait(failures, 0))
			continue
		case !slices.Contains(r.Verbs, "watch"):
			return nil, "", fmt.Errorf("%s cannot be watched (the API server offers %s)", of.Resource, strings.Join(r.Verbs, ", "))
		case !r.Namespaced && of.Namespace != "":
			return nil, "", fmt.Errorf("%s are cluster-scoped (remove namespace: %s; the run then watches only the objects that it created)", of.Resource, of.Namespace)
		case !r.Namespaced:
			return []string{root + "/" + plural}, f.options.Selector, nil
		}
		namespaces := f.options.Namespaces
		if of.Namespace != "" {
			namespaces = []string{of.Namespace}
		}
		for _, ns := range namespaces {
			paths = append(paths, root+"/namespaces/"+ns+"/"+plural)
		}
		return paths, "", nil
	}
}

// missingError is the error for a resource that the API server does not serve.
type missingError string

func (e missingError) Error() string {
	return fmt.Sprintf("the API server has no resource %q (`kubectl api-resources` lists its resources; to add one, create its CustomResourceDefinition in setup or objects)", string(e))
}

// discover returns the preferred version of a resource, and the API path of that version.
func (f *Follower) discover(ctx context.Context, resource string) (root string, r metav1.APIResource, err error) {
	plural, group, _ := strings.Cut(resource, ".")
	root = "/api/v1"
	if group != "" {
		var g metav1.APIGroup
		if err := f.get(ctx, "/apis/"+group, resource, &g); err != nil {
			return "", r, err
		}
		root = "/apis/" + g.PreferredVersion.GroupVersion
	}
	var list metav1.APIResourceList
	if err := f.get(ctx, root, resource, &list); err != nil {
		return "", r, err
	}
	for _, found := range list.APIResources {
		if found.Name == plural {
			return root, found, nil
		}
	}
	return "", r, missingError(resource)
}

func (f *Follower) get(ctx context.Context, path, resource string, into any) error {
	data, err := apiclient.Body(f.rest.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx))
	switch {
	case apierrors.IsNotFound(err):
		return missingError(resource)
	case err != nil:
		return fmt.Errorf("discover %s: %w", resource, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("discover %s: response to GET %s: %w", resource, path, err)
	}
	return nil
}
