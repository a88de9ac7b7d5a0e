package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Objects returns a client for actions on objects of any resource, with the user's identity. `retry` repeats a request
// while the control plane is unavailable; nil means no retries.
func (t *Target) Objects(retry func(ctx context.Context, ask func() error) error) (*objects.Objects, error) {
	o := objects.Options{
		Namespaces: t.BatchNamespaces(), Group: t.plan.NamespaceGroup, Labels: t.Labels, OwnLabel: RunLabel, Seed: t.plan.Seed, Retry: retry,
	}
	o.NodeSelector, o.Tolerations = t.PodPlacement(), Tolerations()
	return objects.New(t.Admin, o)
}

// PodPlacement returns the node selector of the run's pods. Without simulated nodes it returns nil, and the pods may
// run on any node.
func (t *Target) PodPlacement() map[string]string {
	if t.plan.Nodes.Count == 0 {
		return nil
	}
	return t.NodeSelector()
}

// BatchNamespaces returns the namespaces in which batches create objects, starting with the run's namespace.
func (t *Target) BatchNamespaces() []string { return t.plan.BatchNamespaces(t.Namespace) }

// makeObjects creates the scenario's objects. It also checks, by dry run, the objects that actions and loads will create.
func (t *Target) makeObjects(ctx context.Context) error {
	if len(t.plan.Batches) == 0 {
		return nil
	}
	defer t.waiting("the objects of the scenario")()
	actor, err := t.Objects(nil)
	if err != nil {
		return err
	}
	for i, b := range t.plan.Batches {
		err := actor.Try(ctx, b.Expanded)
		if err == nil && i < len(t.plan.Objects) { // the batches of Scenario.Objects come first
			_, err = actor.Make(ctx, b.Expanded, scenario.Action{Kind: "create"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batchNeeds returns the permissions that the user needs to check all batches (objects from templates), to create the
// batches of the scenario and of actions, and to perform the actions on objects. They include the permissions to list
// and delete cluster-scoped objects, which the cleanup needs.
func batchNeeds(l *lookup, ns string) ([]need, error) {
	all, err := l.creations(ns, func(b plan.Batch) string { return b.Verbs })
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if n.namespace == "" && n.verb == "create" {
			all = append(all, each("get list delete", n.group, n.resource, "")...)
		}
	}
	var actions []scenario.Action
	for _, p := range l.plan.Phases {
		actions = append(actions, p.Actions...)
	}
	for _, a := range append(actions, l.plan.Teardown...) {
		if a.Target.Resource == "" {
			continue
		}
		r := schema.ParseGroupResource(a.Target.Resource)
		where, err := l.scope(r, ns)
		if err != nil {
			continue // the create request will report the error
		}
		all = append(all, each(a.Verbs(), r.Group, r.Resource, where)...)
	}
	return all, nil
}

// creations returns the permissions on the resources of all batches (objects from templates). The function `verbs`
// returns the verbs that a batch needs.
func (l *lookup) creations(ns string, verbs func(plan.Batch) string) ([]need, error) {
	var all []need
	for _, b := range l.plan.Batches {
		for _, k := range b.Expanded.Kinds() {
			gv, err := schema.ParseGroupVersion(k.APIVersion)
			if err != nil {
				continue
			}
			r, namespaced, ok, err := l.resourceOf(gv.WithKind(k.Kind))
			if err != nil {
				return nil, err
			}
			where := ns
			if !namespaced {
				where = ""
			}
			for _, n := range each(verbs(b), r.Group, r.Resource, where) {
				if ok && !slices.Contains(all, n) {
					all = append(all, n)
				}
			}
		}
	}
	return all, nil
}

// removedElsewhere are the cluster-scoped resources that other steps of a cleanup remove.
var removedElsewhere = []string{
	"namespaces", "nodes", "csinodes.storage.k8s.io", "certificatesigningrequests.certificates.k8s.io",
	"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io", definitions + "." + definitionsGroup,
}

// discovered removes the run's objects of all other cluster-scoped resources: those that the cluster serves and that no
// other step of the cleanup removes.
func (c *cleaner) discovered(ctx context.Context) error {
	if c.discovery == nil {
		return nil
	}
	lists, err := c.discovery.ServerPreferredResources()
	failed, some := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !some {
		return fmt.Errorf("discover resources: %w", err)
	}
	for gv := range failed {
		c.removed.Unanswered = append(c.removed.Unanswered, gv.String())
	}
	slices.Sort(c.removed.Unanswered)
	for _, list := range lists {
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
			err := c.removeObjects(ctx, resource, r.Kind)
			if err = c.noteUnseen(r.Name, err); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}
