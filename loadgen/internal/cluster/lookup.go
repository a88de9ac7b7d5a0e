package cluster

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// lookup finds resources that the cluster serves or that the run itself defines.
type lookup struct {
	plan      *plan.Plan
	discovery discovery.DiscoveryInterface
	mapper    meta.RESTMapper // resources that the cluster serves; nil until they are first needed
}

func newLookup(d discovery.DiscoveryInterface, s *plan.Plan) *lookup {
	return &lookup{plan: s, discovery: d}
}

func (l *lookup) mapping() (meta.RESTMapper, error) {
	if l.mapper == nil {
		groups, err := restmapper.GetAPIGroupResources(l.discovery)
		if err != nil {
			return nil, fmt.Errorf("discover its resources: %w", explain(err))
		}
		l.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	}
	return l.mapper, nil
}

func (l *lookup) namespaced(r schema.GroupResource) (bool, error) {
	if r.String() == scenario.WidgetResource {
		return true, nil
	}
	if i := slices.IndexFunc(l.plan.Defined, func(c scenario.CustomResource) bool { return c.Name == r.String() }); i >= 0 {
		return l.plan.Defined[i].Namespaced, nil
	}
	mapper, err := l.mapping()
	if err != nil {
		return false, err
	}
	kind, err := mapper.KindFor(r.WithVersion(""))
	if err != nil {
		return false, fmt.Errorf("it has no resource %q (`kubectl api-resources` lists its resources; to add a custom resource, create its CustomResourceDefinition in setup or objects)", r)
	}
	found, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("it has no resource %q: %w", r, err)
	}
	return found.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// scope returns the namespace in which a permission on a resource applies: ns, or "" if the resource is cluster-scoped.
func (l *lookup) scope(r schema.GroupResource, ns string) (string, error) {
	namespaced, err := l.namespaced(r)
	if !namespaced {
		return "", err
	}
	return ns, nil
}

// resourceOf finds the resource of a kind. ok is false if the cluster does not serve the kind; a later request for the kind
// then fails.
func (l *lookup) resourceOf(kind schema.GroupVersionKind) (r schema.GroupResource, namespaced, ok bool, err error) {
	for _, c := range l.plan.Defined {
		if resource := schema.ParseGroupResource(c.Name); c.Kind == kind.Kind && resource.Group == kind.Group {
			return resource, c.Namespaced, true, nil
		}
	}
	mapper, err := l.mapping()
	if err != nil {
		return r, false, false, err
	}
	found, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return r, false, false, nil
	}
	return found.Resource.GroupResource(), found.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
}
