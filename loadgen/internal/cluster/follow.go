package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Namespaces returns the run's namespaces. The first is the main namespace, which also carries the deadline.
func (t *Target) Namespaces() []string { return t.namespaces }

// followNeeds returns the permissions to watch the objects that the scenario's conditions and transitions name. They
// apply in the run's namespaces or, for cluster-scoped resources and other namespaces, in the whole cluster.
func followNeeds(l *lookup, ns string) ([]need, error) {
	var needs []need
	own := l.plan.BatchNamespaces(ns)
	for _, set := range l.plan.Followed {
		r, where := schema.ParseGroupResource(set.Resource), ""
		if set.Namespace == "" || slices.Contains(own, set.Namespace) {
			var err error
			if where, err = l.scope(r, ns); err != nil {
				return nil, err
			}
		}
		needs = append(needs, each("list watch", r.Group, r.Resource, where)...)
	}
	return needs, nil
}
