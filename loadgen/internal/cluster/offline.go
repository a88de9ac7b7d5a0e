package cluster

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// offline is a discovery client that knows only the built-in resources of Kubernetes. Without a cluster, previews of
// scenarios use it.
type offline struct{ discovery.DiscoveryInterface }

// ServerGroupsAndResources lists the built-in resources of Kubernetes.
func (offline) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	known := builtin.Resources()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		r, group := known[name], builtin.GroupOf(name)
		g := slices.IndexFunc(groups, func(g *metav1.APIGroup) bool { return g.Name == group })
		if g < 0 {
			g, groups = len(groups), append(groups, &metav1.APIGroup{Name: group})
		}
		for _, gv := range r.Versions {
			version := gv[strings.LastIndexByte(gv, '/')+1:]
			found := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
			if !slices.Contains(groups[g].Versions, found) {
				groups[g].Versions = append(groups[g].Versions, found)
			}
			l := slices.IndexFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == gv })
			if l < 0 {
				l, lists = len(lists), append(lists, &metav1.APIResourceList{GroupVersion: gv})
			}
			lists[l].APIResources = append(lists[l].APIResources, metav1.APIResource{
				Name: strings.TrimSuffix(name, "."+group), Kind: r.Kind, Verbs: r.Verbs, Namespaced: !r.Cluster,
			})
		}
	}
	for _, g := range groups {
		g.PreferredVersion = g.Versions[0]
	}
	return groups, lists, nil
}
