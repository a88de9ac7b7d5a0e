package cluster

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// lookup finds the facts on which the permissions of a scenario depend: the resources that the cluster serves, the custom
// resources that the run itself defines, and the kinds in the batches. It reads each fact once, on first use.
type lookup struct {
	scenario  *scenario.Scenario
	discovery discovery.DiscoveryInterface

	mapper  meta.RESTMapper // nil: not read yet
	custom  []scenario.CustomResource
	batches []kindsOf
	read    bool // whether custom and batches were read
}

type kindsOf struct {
	scenario.PlacedBatch
	kinds []scenario.ObjectKind
}

func newLookup(d discovery.DiscoveryInterface, s *scenario.Scenario) *lookup {
	return &lookup{scenario: s, discovery: d}
}

// expand expands the batches and stores their kinds. It fails only if the scenario was not parsed before.
func (l *lookup) expand() error {
	if l.read {
		return nil
	}
	for _, b := range l.scenario.Batches() {
		all, err := l.scenario.Expand(b)
		if err != nil {
			return err
		}
		l.batches = append(l.batches, kindsOf{b, all.Kinds()})
	}
	l.custom, l.read = l.scenario.CustomResources(), true
	return nil
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

// definedBy returns a custom resource that the run defines and for which f returns true.
func (l *lookup) definedBy(f func(scenario.CustomResource) bool) (c scenario.CustomResource, ok bool, err error) {
	if err := l.expand(); err != nil {
		return c, false, err
	}
	if i := slices.IndexFunc(l.custom, f); i >= 0 {
		return l.custom[i], true, nil
	}
	return c, false, nil
}

func (l *lookup) namespaced(r schema.GroupResource) (bool, error) {
	if r.String() == scenario.WidgetResource {
		return true, nil
	}
	c, defined, err := l.definedBy(func(c scenario.CustomResource) bool { return c.Name == r.String() })
	if defined || err != nil {
		return c.Namespaced, err
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
	c, defined, err := l.definedBy(func(c scenario.CustomResource) bool {
		return c.Kind == kind.Kind && schema.ParseGroupResource(c.Name).Group == kind.Group
	})
	if defined || err != nil {
		return schema.ParseGroupResource(c.Name), c.Namespaced, defined, err
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
