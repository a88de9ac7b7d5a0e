package cluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Namespaces are the run's, its first one first.
func (t *Target) Namespaces() []string { return t.namespaces }

// followNeeds are those of conditions and transitions over objects: in the run's namespace, or in the cluster where the
// resource has none or another namespace is named.
func followNeeds(d discovery.DiscoveryInterface, ns string, s *scenario.Scenario) ([]need, error) {
	var needs []need
	var mapper meta.RESTMapper
	for _, set := range s.Followed() {
		plural, group, _ := strings.Cut(set.Resource, ".")
		where := ns
		if set.Namespace != "" {
			where = ""
		} else if scope := scopeOf(s, set.Resource); scope != "" {
			if scope != "Namespaced" {
				where = ""
			}
		} else if namespaced, err := isNamespaced(d, &mapper, s, schema.GroupResource{Group: group, Resource: plural}); err != nil {
			return nil, err
		} else if !namespaced {
			where = ""
		}
		needs = append(needs, each("list watch", group, plural, where)...)
	}
	return needs, nil
}

// scopeOf is that of a custom resource that the run defines, or "".
func scopeOf(s *scenario.Scenario, resource string) string {
	if resource == scenario.WidgetResource {
		return "Namespaced"
	}
	for _, m := range s.Manifests() {
		if !m.Defines() {
			continue
		}
		for _, one := range m.Objects() {
			if one.Name == resource {
				scope, _, _ := unstructured.NestedString(one.Object, "spec", "scope")
				return scope
			}
		}
	}
	return ""
}
