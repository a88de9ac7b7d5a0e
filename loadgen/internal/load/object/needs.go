package object

import (
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Need is an RBAC permission that a load needs.
type Need struct {
	Verb, Group, Resource string
	// Name is the name of the only object for which the load needs the permission. Empty means all objects.
	Name string
	// Cluster means that the load needs the permission in all namespaces, or that the resource is cluster-scoped. If
	// false, it needs the permission only in the namespaces that scenario.Load.NamespacesIn returns.
	Cluster bool
}

// Needs returns the permissions that a load of kind "requests" or "watches" needs. Tenants need only the permissions
// for the measured requests. The load's own identity needs all permissions, except to create namespaces that exist, and
// to get and create the CustomResourceDefinition of widgets if it exists.
func Needs(l scenario.Load) []Need {
	var all []Need
	add := func(need Need) {
		if !slices.Contains(all, need) {
			all = append(all, need)
		}
	}
	for _, x := range l.Operations() {
		if builtin.IsDocument(x.Resource) { // every user may read documents
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

// measured returns the RBAC verb that the measured requests of an operation need.
func measured(x scenario.Operation) string {
	if x.Verb == "apply" {
		return "patch"
	}
	return x.Verb
}

// verbsOf returns the RBAC verbs that one operation needs. own means that the load creates the operation's objects. For
// a load of kind "watches", the result includes the verbs with which loads of kind "changes" write its objects.
func verbsOf(l scenario.Load, x scenario.Operation, own bool) []string {
	var verbs []string
	switch {
	case l.OpensWatches():
		verbs = []string{"list", "watch"}
		if own {
			verbs = append(verbs, "patch") // for changes
		}
	case x.Verb == "get" && !own:
		verbs = []string{"get", "list"} // a list provides the names
	case x.Verb == "apply":
		verbs = []string{"patch"}
	case x.Verb == "update":
		verbs = []string{"update", "get"} // get reads unknown versions
	case x.Verb == "deletecollection":
		verbs = []string{x.Verb, "list"} // list finds the objects that were not deleted
	default:
		verbs = []string{x.Verb}
	}
	if own {
		// The load creates objects, applies existing ones, and recreates deleted ones.
		verbs = append(verbs, "create", "patch")
	}
	return verbs
}
