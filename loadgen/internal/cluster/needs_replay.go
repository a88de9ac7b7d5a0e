package cluster

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/stormglass/stormglass/loadgen/internal/load/replay"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// replayNeeds returns the permissions to replay a recording: to send its requests for resources that the cluster has,
// and to impersonate its users. For other loads it returns nothing. The load's method Prepare reports resources that
// the cluster lacks.
func replayNeeds(d discovery.DiscoveryInterface, ns string, l *scenario.Load) ([]need, error) {
	if l.Recorded == nil {
		return nil, nil
	}
	namespaced, err := namespacedBy(d)
	if err != nil {
		return nil, err
	}
	var needs []need
	for _, n := range replay.Needs(l.Recorded, namespaced) {
		x := need{verb: n.Verb, group: n.Group, resource: n.Resource, namespace: ns}
		if n.Cluster {
			x.namespace = metav1.NamespaceAll
		}
		needs = append(needs, x)
	}
	for _, user := range l.Users() {
		needs = append(needs, need{verb: "impersonate", resource: "users", name: user})
	}
	needs = append(needs, need{verb: "impersonate", resource: "groups", name: scenario.TenantsGroup})
	return slices.Compact(needs), nil
}

// namespacedBy reports, for each resource that a cluster serves, such as "deployments.apps", whether it is namespaced.
func namespacedBy(d discovery.DiscoveryInterface) (map[string]bool, error) {
	_, offered, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discover its resources: %w", explain(err))
	}
	namespaced := map[string]bool{}
	for _, list := range offered {
		group := ""
		if g, _, grouped := strings.Cut(list.GroupVersion, "/"); grouped {
			group = "." + g
		}
		for _, r := range list.APIResources {
			namespaced[r.Name+group] = r.Namespaced
		}
	}
	return namespaced, nil
}
