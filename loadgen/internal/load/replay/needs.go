package replay

import (
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// Needs returns the RBAC permissions that the replay of a recording needs: for its users, and for the load itself,
// which creates objects and lists existing ones. The keys of `namespaced` are the resources that the cluster
// serves, such as "deployments.apps". A value is true if the resource is namespaced.
func Needs(t *recording.Recording, namespaced map[string]bool) []object.Need {
	var all []object.Need
	seen := map[object.Need]bool{}
	add := func(n object.Need) {
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
		}
	}
	for _, verb := range []string{"get", "list", "create", "update", "patch", "delete"} {
		add(object.Need{Verb: verb, Resource: configMaps})
	}
	across := make([]bool, len(t.Shapes)) // by shape: at least one request covers all namespaces
	for _, e := range t.Entries {
		across[e.Shape] = across[e.Shape] || e.Namespace == recording.None
	}
	for i, s := range t.Shapes {
		in, known := namespaced[s.GroupResource()]
		fate, _ := fateOf(s, facts{lacking: !known, namespaced: in})
		if fate != asRecorded {
			continue
		}
		cluster := across[i] || !in
		resource := s.Resource
		if s.Subresource != "" {
			resource += "/" + s.Subresource
		}
		add(object.Need{Verb: s.Verb, Group: s.Group, Resource: resource, Cluster: cluster})
		switch {
		case builtin.IsReview(s.GroupResource()):
		case in: // the load creates objects beforehand or in a dry run
			add(object.Need{Verb: "create", Group: s.Group, Resource: s.Resource})
		case s.Verb == "get": // the load lists existing objects
			add(object.Need{Verb: "list", Group: s.Group, Resource: s.Resource, Cluster: true})
		}
	}
	slices.SortFunc(all, func(a, b object.Need) int { return compareNeeds(a, b) })
	return all
}

func compareNeeds(a, b object.Need) int {
	return slices.Compare([]string{a.Group, a.Resource, a.Verb}, []string{b.Group, b.Resource, b.Verb})
}
