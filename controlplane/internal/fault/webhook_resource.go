package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
)

// checkServed refuses a webhook on a resource that the API server does not serve, as
// "deployments" without its group: no request would ever match it.
func (m *Manager) checkServed(ctx context.Context, f control.Fault) error {
	hooks, err := m.webhooks(m.host.Kubeconfig())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	switch found, err := hooks.serves(ctx, f.Resource); {
	case err != nil:
		return fmt.Errorf("%s cannot begin: ask the API server for %s: %w", f.Kind, f.Resource, err)
	case !found:
		return &control.InvalidFault{Problems: []control.Problem{{
			Path: "resource", Msg: fmt.Sprintf("the API server has no %s to create", f.Resource),
			Hint: `plural and with its group, as "deployments.apps"; controlplane kubectl api-resources lists them`,
		}}}
	}
	return nil
}

// serves reports whether a resource, as "pods" or "deployments.apps", can be created
// in any version of its group.
func (a admin) serves(ctx context.Context, resource string) (bool, error) {
	name, group, grouped := strings.Cut(resource, ".")
	versions := []string{"/api/v1"}
	if grouped {
		var g meta.APIGroup
		if found, err := a.discover(ctx, "/apis/"+group, &g); !found || err != nil {
			return false, err
		}
		versions = nil
		for _, v := range g.Versions {
			versions = append(versions, "/apis/"+v.GroupVersion)
		}
	}
	for _, version := range versions {
		var list meta.APIResourceList
		if _, err := a.discover(ctx, version, &list); err != nil {
			return false, err
		}
		if slices.ContainsFunc(list.APIResources, func(r meta.APIResource) bool {
			return r.Name == name && slices.Contains(r.Verbs, "create")
		}) {
			return true, nil
		}
	}
	return false, nil
}

// discover reads what the API server says of itself at a path; found is false if
// it has nothing there.
func (a admin) discover(ctx context.Context, path string, into any) (found bool, err error) {
	data, err := a.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(data, into)
}
