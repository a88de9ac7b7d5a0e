// Package builtin describes the API of Kubernetes itself: resources, fields of their objects, and quantities.
package builtin

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// table lists the resources. A test generates and checks it from Kubernetes' own discovery documents.
//
//go:embed resources.txt
var table string

// Resource is a resource of Kubernetes itself.
type Resource struct {
	Kind     string
	Versions []string // such as "apps/v1", the preferred version first
	Verbs    []string
	Cluster  bool // whether its objects have no namespace
}

// Resources maps names, such as "pods" or "deployments.apps", to resources.
var Resources = sync.OnceValue(func() map[string]Resource {
	all := map[string]Resource{}
	for name, words := range rows(table) {
		all[name] = Resource{words[0], strings.Split(words[1], ","), strings.Split(words[2], ","), len(words) > 3}
	}
	return all
})

//go:embed selectable.txt
var selectableTable string

// Selectable maps each resource to the fields that its field selectors may use. It omits resources that support only
// metadata.name and metadata.namespace.
var Selectable = sync.OnceValue(func() map[string][]string { return rows(selectableTable) })

func rows(table string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			all[words[0]] = words[1:]
		}
	}
	return all
}

// IsDocument reports whether the resource that a load requests is the path of a discovery or OpenAPI document.
func IsDocument(resource string) bool { return strings.HasPrefix(resource, "/") }

// GroupOf returns the API group of a resource. It is "" for the core group.
func GroupOf(resource string) string {
	_, group, _ := strings.Cut(resource, ".")
	return group
}

// IsCustom reports whether the resource belongs to a group that is not one of Kubernetes' own. The names of such groups
// contain a dot. Only a cluster knows whether it serves the resource.
func IsCustom(resource string) bool {
	if IsDocument(resource) || !strings.Contains(GroupOf(resource), ".") {
		return false
	}
	for name := range Resources() {
		if GroupOf(name) == GroupOf(resource) {
			return false
		}
	}
	return true
}

// IsReview reports whether the resource is a review, such as subjectaccessreviews.authorization.k8s.io: the API server
// answers a create but stores nothing. Reviews have no metadata.
func IsReview(resource string) bool {
	group := GroupOf(resource)
	return (group == "authentication.k8s.io" || group == "authorization.k8s.io") && slices.Equal(Resources()[resource].Verbs, []string{"create"})
}

// Hint returns a hint for the name of an unknown resource.
func Hint(name string) string {
	plural, _, _ := strings.Cut(name, ".")
	known := slices.Sorted(maps.Keys(Resources()))
	for _, k := range known {
		if other, _, _ := strings.Cut(k, "."); other == plural || strings.EqualFold(Resources()[k].Kind, plural) {
			return fmt.Sprintf("did you mean %q?", k)
		}
	}
	return strictyaml.Hint(name, known, "write the plural with its group, as `kubectl api-resources` lists it, for example pods or deployments.apps")
}

// UnknownKind returns a hint if apiVersion is in one of Kubernetes' own groups, present or past, and this group lacks
// the kind. Otherwise it returns "".
func UnknownKind(apiVersion, kind string) string {
	group := ""
	if gv, err := schema.ParseGroupVersion(apiVersion); err == nil {
		group = gv.Group
	}
	var kinds []string
	for name, of := range Resources() {
		switch {
		case of.Kind == kind && slices.Contains(of.Versions, apiVersion):
			return ""
		case GroupOf(name) == group:
			kinds = append(kinds, of.Kind)
		}
	}
	if len(kinds) == 0 && strings.Contains(group, ".") {
		return "" // a custom resource: only a cluster knows it
	}
	for _, of := range Resources() {
		if of.Kind == kind {
			return "write apiVersion: " + of.Versions[0]
		}
	}
	slices.Sort(kinds)
	return strictyaml.Hint(kind, slices.Compact(kinds), "write it as `kubectl api-resources` lists it")
}

// ResourceOf returns the resource of a kind, such as "deployments.apps". For custom resources it applies the
// usual naming rules.
func ResourceOf(apiVersion, kind string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	for name, of := range Resources() {
		if of.Kind == kind && GroupOf(name) == gv.Group {
			return name
		}
	}
	plural := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(plural, "s"), strings.HasSuffix(plural, "x"), strings.HasSuffix(plural, "ch"), strings.HasSuffix(plural, "sh"):
		plural += "es"
	case strings.HasSuffix(plural, "y"):
		plural = strings.TrimSuffix(plural, "y") + "ies"
	default:
		plural += "s"
	}
	if gv.Group == "" {
		return plural
	}
	return plural + "." + gv.Group
}
