package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Objects acts on objects of any resource as the user. retry repeats a request while the control plane is away;
// nil: once.
func (t *Target) Objects(retry func(ctx context.Context, ask func() error) error) (*objects.Objects, error) {
	o := objects.Options{
		Namespaces: t.BatchNamespaces(), Labels: t.Labels, OwnLabel: RunLabel, Seed: t.scenario.Seed, Retry: retry,
	}
	o.NodeSelector, o.Tolerations = t.PodPlacement(), Tolerations()
	return objects.New(t.Admin, o)
}

// PodPlacement is NodeSelector, or nil without simulated nodes: pods then run where the cluster puts them.
func (t *Target) PodPlacement() map[string]string {
	if t.scenario.Nodes.Count == 0 {
		return nil
	}
	return t.NodeSelector()
}

// BatchNamespaces are those of batches, the run's own first.
func (t *Target) BatchNamespaces() []string { return t.scenario.BatchNamespaces(t.Namespace) }

// makeObjects makes the scenario's objects, and lets the API server check those that actions and loads will make.
func (t *Target) makeObjects(ctx context.Context) error {
	batches := t.scenario.Batches()
	if len(batches) == 0 {
		return nil
	}
	defer t.waiting("the objects of the scenario")()
	actor, err := t.Objects(nil)
	if err != nil {
		return err
	}
	for i, b := range batches {
		all, err := t.scenario.Expand(b)
		if err == nil {
			err = actor.Try(ctx, all)
		}
		if err == nil && i < len(t.scenario.Objects) { // these are the first
			_, err = actor.Make(ctx, all, scenario.Action{Kind: "create"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mapping finds the resources of kinds among those that a cluster serves now.
type mapping struct{ meta.RESTMapper }

func newMapping(d discovery.DiscoveryInterface) (mapping, error) {
	groups, err := restmapper.GetAPIGroupResources(d)
	if err != nil {
		return mapping{}, fmt.Errorf("discover its resources: %w", explain(err))
	}
	return mapping{restmapper.NewDiscoveryRESTMapper(groups)}, nil
}

// needs are verbs on the resource of a kind. One that is not served is left to its request.
func (m mapping) needs(verbs string, kind schema.GroupKind, ns string, versions ...string) []need {
	found, err := m.RESTMapping(kind, versions...)
	if err != nil {
		return nil
	}
	if found.Scope.Name() != meta.RESTScopeNameNamespace {
		ns, verbs = "", verbs+" get list delete"
	}
	return each(verbs, found.Resource.Group, found.Resource.Resource, ns)
}

// batchNeeds are those of the user, for batches of the scenario and of actions and for what actions do to objects, or
// with loads those of the identity of load, for batches of loads.
func batchNeeds(d discovery.DiscoveryInterface, ns string, s *scenario.Scenario, loads bool) ([]need, error) {
	batches := s.Batches()
	if len(batches) == 0 && len(s.Selections()) == 0 {
		return nil, nil
	}
	m, err := newMapping(d)
	if err != nil {
		return nil, err
	}
	var all []need
	for _, b := range batches {
		expanded, err := s.Expand(b)
		if err != nil {
			return nil, err
		}
		if ofLoad := slices.ContainsFunc(s.Loads(), func(l scenario.PlacedLoad) bool { return l.Path == b.Path }); ofLoad != loads {
			continue
		}
		for _, k := range expanded.Kinds() {
			if gv, err := schema.ParseGroupVersion(k.APIVersion); err == nil {
				all = append(all, m.needs("create patch", gv.WithKind(k.Kind).GroupKind(), ns, gv.Version)...)
			}
		}
	}
	if loads {
		return all, nil
	}
	for _, a := range s.Selections() {
		kind, err := m.KindFor(schema.ParseGroupResource(a.Target.Resource).WithVersion(""))
		if err != nil {
			continue
		}
		all = append(all, m.needs(a.Verbs(), kind.GroupKind(), ns)...)
	}
	return all, nil
}

// removedElsewhere are the resources without namespaces that have their own part in a cleanup.
var removedElsewhere = []string{
	"namespaces", "nodes", "csinodes.storage.k8s.io", "certificatesigningrequests.certificates.k8s.io",
	"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io", definitions + "." + definitionsGroup,
}

// discovered removes the run's objects of all other resources without namespaces that the cluster serves.
func (c *cleaner) discovered(ctx context.Context) error {
	if c.discovery == nil {
		return nil
	}
	lists, err := c.discovery.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return fmt.Errorf("discover resources: %w", err)
	}
	for _, list := range lists { // of a group that does not answer there is no list
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			resource := gv.WithResource(r.Name)
			known := slices.ContainsFunc(c.created, func(k scenario.Creatable) bool { return k.Resource.GroupResource() == resource.GroupResource() })
			if r.Namespaced || known || strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") ||
				slices.Contains(removedElsewhere, resource.GroupResource().String()) {
				continue
			}
			client := metadataCollection{c.metadata.Resource(resource)}
			err := removeListed(ctx, c, r.Kind, r.Name, client, c.owned, nil, &c.removed.ClusterObjects)
			if err = c.noteUnseen(r.Name, err); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}
