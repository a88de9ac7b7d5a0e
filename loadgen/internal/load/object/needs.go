package object

import (
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Need is one permission that a load needs.
type Need struct {
	Verb, Group, Resource string
	// Name of the one object that it is for; "" for all.
	Name string
	// Cluster is set if the permission is needed in all namespaces, or the resource is not namespaced.
	// Otherwise it is needed in the namespaces of Load.NamespacesIn.
	Cluster bool
}

// Needs returns the permissions of a load of requests or watches. Tenants need the measured ones, the load's
// own identity needs all. The permissions to create namespaces, and to get and create the definition of
// widgets, are not needed if the target's setup has made them.
func Needs(l scenario.Load) []Need {
	var all []Need
	add := func(need Need) {
		if !slices.Contains(all, need) {
			all = append(all, need)
		}
	}
	for _, x := range l.Operations() {
		if scenario.IsDocument(x.Resource) { // every user may read it
			continue
		}
		resource, group, _ := strings.Cut(x.Resource, ".")
		own := l.OwnObjects(x)
		several := own && l.Namespaces > 1
		for _, verb := range verbsOf(l, x, own) {
			across := x.Scope == "cluster" || l.OpensWatches() && several && (verb == "list" || verb == "watch")
			if x.Subresource != "" && verb == measured(x) {
				add(Need{Verb: verb, Group: group, Resource: resource + "/" + x.Subresource, Cluster: across})
			}
			add(Need{Verb: verb, Group: group, Resource: resource, Cluster: across})
		}
		if l.Namespaces > 1 && (own || x.Verb == "create") {
			add(Need{Verb: "create", Resource: "namespaces", Cluster: true})
		}
		if x.Resource == scenario.WidgetResource {
			definition := Need{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Cluster: true}
			definition.Verb = "create"
			add(definition)
			definition.Verb, definition.Name = "get", scenario.WidgetResource
			add(definition)
		}
	}
	for _, t := range l.Tenants {
		add(Need{Verb: "impersonate", Resource: "users", Name: scenario.TenantUser(t.Name), Cluster: true})
		for _, g := range append([]string{scenario.TenantsGroup}, t.Groups...) {
			add(Need{Verb: "impersonate", Resource: "groups", Name: g, Cluster: true})
		}
	}
	return all
}

// measured returns the verb of an operation as RBAC has it.
func measured(x scenario.Operation) string {
	if x.Verb == "apply" {
		return "patch"
	}
	return x.Verb
}

// verbsOf returns the verbs of one operation, or of watches and their changes.
func verbsOf(l scenario.Load, x scenario.Operation, own bool) []string {
	var verbs []string
	switch {
	case l.OpensWatches():
		verbs = []string{"list", "watch"}
		if own {
			verbs = append(verbs, "patch") // the changes'
		}
	case x.Verb == "get" && !own:
		verbs = []string{"get", "list"} // names are found by a list
	case x.Verb == "apply":
		verbs = []string{"patch"}
	case x.Verb == "update":
		verbs = []string{"update", "get"} // of a version that was lost
	case x.Verb == "deletecollection":
		verbs = []string{x.Verb, "list"} // of what is left
	default:
		verbs = []string{x.Verb}
	}
	if own {
		// Made, taken over if they are there, and after a delete made again.
		verbs = append(verbs, "create", "patch")
	}
	return verbs
}
