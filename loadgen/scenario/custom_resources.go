package scenario

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CustomResource is a custom resource that an object of the run defines.
type CustomResource struct {
	Name       string // name of the custom resource, such as "databases.example.com"
	Kind       string
	Namespaced bool
	// Early is true if the definition is in `setup` or `objects`, so that the resource exists before any load starts.
	Early bool
}

// CustomResources lists the custom resources that the setup, objects, actions and loads define, in this order. It omits
// batches whose files were not read.
func (s *Scenario) CustomResources() []CustomResource {
	var all []CustomResource
	add := func(early bool, definition map[string]any) {
		name, _, _ := unstructured.NestedString(definition, "metadata", "name")
		kind, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(definition, "spec", "scope")
		if !slices.ContainsFunc(all, func(c CustomResource) bool { return c.Name == name }) {
			all = append(all, CustomResource{name, kind, scope == "Namespaced", early})
		}
	}
	setup := len(s.SetupManifests())
	for i, m := range s.Manifests() {
		if m.Defines() {
			for _, one := range m.Objects() {
				add(i < setup, one.Object)
			}
		}
	}
	for i, b := range s.Batches() {
		expanded, err := s.Expand(b)
		if err != nil {
			continue // the reader of the files reports the error
		}
		for _, definition := range expanded.definitions() {
			add(i < len(s.Objects), definition)
		}
	}
	return all
}

// DefinitionKind is the kind of custom resource definitions.
const DefinitionKind = "CustomResourceDefinition"

func (o *Objects) definitions() []map[string]any {
	if !slices.ContainsFunc(o.kinds, func(k ObjectKind) bool { return k.Kind == DefinitionKind }) {
		return nil
	}
	var all []map[string]any
	for n := range min(o.iteration, o.Len()) {
		if o.kinds[o.KindAt(n)].Kind != DefinitionKind {
			continue
		}
		if one, err := o.At(n); err == nil {
			all = append(all, one.Manifest)
		}
	}
	return all
}

// StubAnnotation marks a CustomResourceDefinition without a schema. An import writes it for a resource that a bundled
// control plane does not have.
const StubAnnotation = "stormglass.dev/stub"

// stubs returns a warning that names the custom resource definitions in the setup that have StubAnnotation.
func (s *Scenario) stubs() []string {
	var names []string
	for _, m := range s.SetupManifests() {
		if _, ok, _ := unstructured.NestedFieldNoCopy(m.Object, "metadata", "annotations", StubAnnotation); ok && m.Defines() {
			names = append(names, m.Name)
		}
	}
	what := fmt.Sprintf("%d CRDs are stubs", len(names))
	switch len(names) {
	case 0:
		return nil
	case 1:
		what = "1 CRD is a stub"
	}
	return []string{s.Errorf("setup", "the load on them reaches only API servers and etcd", "%s (no validation, no controllers): %s", what, strings.Join(names, ", ")).Error()}
}
