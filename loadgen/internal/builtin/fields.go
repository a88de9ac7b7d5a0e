package builtin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// fieldCheck checks the fields of objects. It calls fail for each error. unknown, if not nil, receives the path of each
// field that an object's type lacks.
type fieldCheck struct {
	fail    func(path, hint, format string, args ...any)
	unknown func(path string)
}

// CheckFields checks the fields of an object, as the API server decodes them, and calls fail for each error. The API
// server silently drops unknown fields, and answers with status 400 if a value has the wrong type.
func CheckFields(path string, object map[string]any, fail func(path, hint, format string, args ...any)) {
	fieldCheck{fail: fail}.object(path, object)
}

func (c fieldCheck) object(path string, object map[string]any) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	want := reflect.TypeFor[any]()
	if typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(apiVersion, kind)); err == nil {
		want = reflect.TypeOf(typed).Elem()
	}
	c.value(path, object, want)
}

func (c fieldCheck) value(path string, value any, want reflect.Type) {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	refuse := func(hint, expected string) {
		if kind := reflect.ValueOf(value).Kind(); (kind == reflect.Map || kind == reflect.Slice) && want.Kind() != reflect.Slice {
			hint = "write a single value"
		}
		c.fail(path, hint, "must be %s, not %s", expected, valueName(value))
	}
	if value == nil {
		return
	}
	if hint, expected, ok := unmarshals(value, want); !ok {
		refuse(hint, expected)
		return
	} else if reflect.PointerTo(want).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return
	}
	switch want.Kind() {
	case reflect.Struct, reflect.Map, reflect.Interface:
		c.members(path, value, want)
	case reflect.Slice:
		if want.Elem().Kind() == reflect.Uint8 {
			text, ok := value.(string)
			if _, err := base64.StdEncoding.DecodeString(text); !ok || err != nil {
				refuse("encode the text with base64 -w0; the stringData of a Secret takes plain text", "base64")
			}
			return
		}
		items, ok := value.([]any)
		if !ok {
			refuse("write [a, b], or lines that begin with -", "a list")
			return
		}
		for i, item := range items {
			c.value(fmt.Sprintf("%s[%d]", path, i), item, want.Elem())
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			refuse("put it in quotes", "text")
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			refuse("write true or false", "true or false")
		}
	case reflect.Int32, reflect.Int64:
		n, ok := number(value)
		most := int64(1)<<(want.Bits()-1) - 1
		switch {
		case !ok || n != math.Trunc(n):
			refuse("write digits only", "a whole number")
		case n > float64(most) || n < -float64(most):
			c.fail(path, fmt.Sprintf("from %d to %d", -most, most), "%s is out of bounds", strconv.FormatFloat(n, 'f', -1, 64))
		}
	case reflect.Float64:
		if _, ok := number(value); !ok {
			refuse("for example 1 or 0.5", "a number")
		}
	}
}

// members checks the members of a map or struct of type want. If want is an interface, value may have any type.
func (c fieldCheck) members(path string, value any, want reflect.Type) {
	free := want.Kind() == reflect.Interface
	if items, ok := value.([]any); ok && free {
		for i, item := range items {
			c.value(fmt.Sprintf("%s[%d]", path, i), item, want)
		}
		return
	}
	if odd, ok := value.(map[any]any); ok {
		for key := range odd {
			if _, ok := key.(string); !ok {
				c.fail(path, fmt.Sprintf(`write "%v":`, key), "field names must be text, but %v is %s", key, valueName(key))
				return
			}
		}
	}
	members, ok := value.(map[string]any)
	switch n, isNumber := number(value); {
	case ok:
	case free && isNumber && (math.IsNaN(n) || math.IsInf(n, 0)):
		c.fail(path, "put it in quotes", "JSON does not support the number %v", n)
		return
	case free:
		return
	default:
		c.fail(path, "write name: value", "must be fields, not %s", valueName(value))
		return
	}
	known := map[string]reflect.Type{}
	if want.Kind() == reflect.Struct {
		jsonFields(want, known)
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		at, of := path+"."+key, want
		switch want.Kind() {
		case reflect.Struct:
			if of = known[key]; of == nil {
				if c.unknown != nil {
					c.unknown(at)
				}
				c.fail(at, fieldHint(key, slices.Sorted(maps.Keys(known))), "unknown field %q", key)
				continue
			}
		case reflect.Map:
			of = want.Elem()
		}
		c.value(at, members[key], of)
	}
}

// UnknownFields returns the paths of the fields that the Go type of an object lacks, such as [spec portalIP]. An API
// server drops such fields. With strict validation, it refuses the object.
func UnknownFields(object map[string]any) (paths [][]string) {
	ignore := func(string, string, string, ...any) {}
	c := fieldCheck{fail: ignore, unknown: func(path string) {
		elements := strings.ReplaceAll(strings.TrimPrefix(path, "."), "[", ".[") // an index is an element too
		paths = append(paths, strings.Split(elements, "."))
	}}
	c.object("", object)
	return paths
}

func jsonFields(of reflect.Type, known map[string]reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			jsonFields(f.Type, known)
		case name != "":
			known[name] = f.Type
		}
	}
}

func fieldHint(key string, known []string) string {
	if len(known) > 12 {
		return strictyaml.Hint(key, known, "see the Kubernetes API reference")
	}
	return strictyaml.Hint(key, known, "known here: "+strings.Join(known, ", "))
}

// unmarshals reports whether a value is valid for a type with its own JSON decoder. It returns true for other types.
func unmarshals(value any, want reflect.Type) (hint, expected string, ok bool) {
	into := reflect.New(want).Interface()
	reader, reads := into.(json.Unmarshaler)
	if !reads {
		return "", "", true
	}
	text, err := json.Marshal(value)
	if _, is := into.(*resource.Quantity); is && hugeQuantity(string(text)) {
		err = resource.ErrFormatWrong
	}
	if err == nil {
		err = reader.UnmarshalJSON(text)
	}
	if err == nil {
		return "", "", true
	}
	switch into.(type) {
	case *resource.Quantity:
		return "for example 500m or 32Gi", "a Kubernetes quantity", false
	case *intstr.IntOrString:
		return "for example 8080, http or 25%", "a number or a name", false
	case *metav1.Time, *metav1.MicroTime:
		return "for example 2026-01-02T15:04:05Z", "a time", false
	}
	return "see the Kubernetes API reference", "a value in a different format", false
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func valueName(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("%.40q", v)
	case []any:
		return "a list"
	case map[string]any, map[any]any:
		return "fields"
	case bool:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("the number %v", value)
}
