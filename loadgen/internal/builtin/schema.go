package builtin

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

// Schema implements condition.Schema for Kubernetes' own resources and their fields. It accepts all fields of custom
// resources, which only a cluster knows.
type Schema struct{}

// Resource returns an error if the resource does not exist or cannot be watched. It accepts all custom resources.
func (Schema) Resource(name string) error {
	of, ok := Resources()[name]
	switch {
	case !ok && IsCustom(name):
		return nil
	case !ok:
		return &condition.Error{Msg: fmt.Sprintf("Kubernetes has no resource %q", name), Hint: Hint(name)}
	}
	for _, verb := range []string{"list", "watch"} {
		if !slices.Contains(of.Verbs, verb) {
			return &condition.Error{Msg: fmt.Sprintf("%s does not support %s", name, verb), Hint: "it supports " + strings.Join(of.Verbs, ", ")}
		}
	}
	return nil
}

// Field returns an error if objects of the resource do not have the field.
func (Schema) Field(resource string, path []string) error {
	of, ok := Resources()[resource]
	if !ok {
		return nil
	}
	typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(of.Versions[0], of.Kind))
	if err != nil {
		return nil
	}
	at := reflect.TypeOf(typed).Elem()
	for i, name := range path {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		switch {
		case reflect.PointerTo(at).Implements(reflect.TypeFor[json.Unmarshaler]()):
			return nil // a quantity, a time
		case at.Kind() == reflect.Map:
			at = at.Elem()
			continue
		case at.Kind() != reflect.Struct:
			return nil
		}
		known := map[string]reflect.Type{}
		jsonFields(at, known)
		if at = known[name]; at == nil {
			names := slices.Sorted(maps.Keys(known))
			hint := fieldHint(name, names)
			if near := strictyaml.Suggest(name, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return &condition.Error{Msg: fmt.Sprintf("%s have no field %s", resource, strings.Join(path[:i+1], ".")), Hint: hint}
		}
	}
	return nil
}
