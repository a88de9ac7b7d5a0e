package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Decode sets the fields of the struct that `into` points to, by their `yaml` tags. It returns the errors of all
// fields, joined by Join. A field with an interface type accepts any YAML. A string accepts any scalar. A struct that
// implements encoding.TextUnmarshaler and has tagged fields accepts either one value or a mapping of its fields.
func (d *Document) Decode(into any) error {
	c := decoder{doc: d}
	c.value(d.root, reflect.ValueOf(into).Elem(), "")
	return d.Join(c.errs)
}

const oneValueHint = "write a single value; quote it if it contains special characters of YAML"

type decoder struct {
	doc  *Document
	errs []error
}

func (c *decoder) fail(n *yaml.Node, path, hint, format string, args ...any) {
	if len(c.errs) >= MaxErrors {
		c.errs = append(c.errs, nil) // Join only counts it
		return
	}
	e := &Error{File: c.doc.File, Line: n.Line, Field: path, Msg: fmt.Sprintf(format, args...), Hint: hint}
	c.doc.place(e, n)
	c.errs = append(c.errs, e)
}

func (c *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	n = follow(n)
	if isNull(n) {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	u, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	if ok && n.Kind == yaml.MappingNode && hasFields(v) {
		ok = false
	}
	if ok {
		if n.Kind != yaml.ScalarNode {
			c.fail(n, path, oneValueHint, "expected a single value, found %s", kindName(n))
			return
		}
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			msg, hint, _ := strings.Cut(err.Error(), "; ")
			c.fail(n, path, hint, "%s", msg)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		c.fields(n, v, path)
	case reflect.Slice:
		c.list(n, v, path)
	case reflect.Map:
		c.mapping(n, v, path)
	case reflect.Interface:
		if !c.noKeyTwice(n, path) {
			return
		}
		var any any
		if err := n.Decode(&any); err != nil {
			c.fail(n, path, "", "%v", strings.TrimPrefix(err.Error(), "yaml: "))
			return
		}
		v.Set(reflect.ValueOf(&any).Elem())
	default:
		c.scalar(n, v, path)
	}
}

func (c *decoder) fields(n *yaml.Node, v reflect.Value, path string) {
	known := map[string]knownField{}
	knownFields(v, known)
	if n.Kind != yaml.MappingNode {
		c.fail(n, path, "known here: "+strings.Join(slices.Sorted(maps.Keys(known)), ", "), "expected fields, found %s", kindName(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if now := renamed(known, key.Value); now != "" {
			c.doc.Deprecated = append(c.doc.Deprecated, c.doc.Errorf(at, "rename it to "+now, "the field %s is deprecated", key.Value))
			key.Value, at = now, join(path, now)
		}
		if line, dup := seen[key.Value]; dup {
			c.fail(key, at, fmt.Sprintf("first on line %d", line), "the field appears twice")
			continue
		}
		seen[key.Value] = key.Line
		field, ok := known[key.Value]
		if !ok {
			c.fail(key, at, fieldHint(key.Value, slices.Collect(maps.Keys(known))), "unknown field %q", key.Value)
			continue
		}
		before := len(c.errs)
		c.value(value, field.value, at)
		if field.zero != "" && len(c.errs) == before && !isNull(follow(value)) && isZero(field.value) {
			means, hint, ok := strings.Cut(field.zero, "; ")
			if !ok {
				hint = "write a value greater than 0"
			}
			c.fail(value, at, hint, "%s would mean the default: %s", written(follow(value)), means)
		}
	}
}

// renamed returns the current name of the field with the given former name, or "" if no field had this name.
func renamed(known map[string]knownField, name string) string {
	for now, field := range known {
		if name != "" && field.was == name {
			return now
		}
	}
	return ""
}

func hasFields(v reflect.Value) bool {
	known := map[string]knownField{}
	if v.Kind() == reflect.Struct {
		knownFields(v, known)
	}
	return len(known) > 0
}

func isZero(v reflect.Value) bool {
	return v.IsZero() || v.CanFloat() && v.Float() == 0 || v.Kind() == reflect.Slice && v.Len() == 0
}

func written(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "[]"
	}
	return n.Value
}

// noKeyTwice reports whether the keys of each mapping in the untyped YAML n are unique, and records an error for each
// repeated key. It also turns dates into strings, as kubectl does.
func (c *decoder) noKeyTwice(n *yaml.Node, path string) bool {
	n = follow(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	before := len(c.errs)
	seen := map[string]int{}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode {
			c.noKeyTwice(child, itemPath(path, n, i))
			continue
		}
		if i%2 == 1 {
			continue
		}
		at := join(path, child.Value)
		if line, dup := seen[child.Value]; dup {
			c.fail(child, at, fmt.Sprintf("first on line %d", line), "the field appears twice")
		}
		seen[child.Value] = child.Line
		c.noKeyTwice(n.Content[i+1], at)
	}
	return len(c.errs) == before
}

// knownField is a field of a struct. The tag `zero:"5s; HINT"` contains the default that the program uses for zero.
// Decode refuses a zero in the document for a field with this tag. The tag `was:"NAME"` contains a former name.
type knownField struct {
	value     reflect.Value
	zero, was string // the values of the tags `zero` and `was`
}

// knownFields adds a struct's fields to `known`, by name. It includes fields of embedded structs (`yaml:",inline"`).
func knownFields(v reflect.Value, known map[string]knownField) {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name, option, _ := strings.Cut(tag.Get("yaml"), ",")
		switch {
		case option == "inline":
			knownFields(v.Field(i), known)
		case name != "" && name != "-":
			known[name] = knownField{v.Field(i), tag.Get("zero"), tag.Get("was")}
		}
	}
}

func (c *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		c.fail(n, path, "write [a, b] or lines that begin with -", "expected a list, found %s", kindName(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if v.Type().Elem().Kind() == reflect.Struct && isNull(follow(item)) {
			c.fail(item, itemPath(path, n, i), "remove it, or write its fields", "the item is empty")
			continue
		}
		c.value(item, v.Index(i), itemPath(path, n, i))
	}
}

func (c *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		c.fail(n, path, "write name: value", "expected fields, found %s", kindName(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, at := n.Content[i], join(path, n.Content[i].Value)
		if v.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			c.fail(key, at, "keep one", "the field appears twice")
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if item.Kind() == reflect.Bool && isNull(follow(n.Content[i+1])) {
			c.fail(key, at, "write true or false", "it has no value")
			continue
		}
		c.value(n.Content[i+1], item, at)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
}

func (c *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		c.fail(n, path, oneValueHint, "expected a single value, found %s", kindName(n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		b, err := strconv.ParseBool(n.Value)
		if err != nil {
			c.fail(n, path, "write true or false", "%q is neither true nor false", n.Value)
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		// For a number out of range, ParseInt returns the largest or smallest int64. The validation of the field then
		// refuses the number and names the bounds.
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			c.fail(n, path, "write digits only", "%q is not a whole number", n.Value)
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			c.fail(n, path, numberHint(n.Value), "%q is not a finite number", n.Value)
			return
		}
		v.SetFloat(f)
	default:
		panic("strictyaml: unsupported field type " + v.Type().String())
	}
}

// numberHint returns a hint that shows how to write a percentage as a number.
func numberHint(text string) string {
	percent, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	if !ok || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return "write a number such as 1 or 0.5"
	}
	return "write " + strconv.FormatFloat(f/100, 'g', 6, 64)
}

// longestPath is the maximum length in bytes of a path in an error; longer paths are cut. Otherwise, many fields below
// a long key would make the errors very large.
const longestPath = 1024

func cut(path string) string {
	if len(path) > longestPath {
		return strings.ToValidUTF8(path[:longestPath], "") + "…"
	}
	return path
}

func join(path, name string) string {
	name = cut(name)
	switch {
	case path == "":
		return name
	case len(path) > longestPath:
		return path
	}
	return path + "." + name
}

// notColon matches NAME=VALUE and NAME:VALUE. YAML reads this as a single scalar, because ": " is missing.
var notColon = regexp.MustCompile(`^(\w+)\s*[:=]\s*(.+)$`)

func fieldHint(name string, known []string) string {
	if strings.ContainsRune(name, noBreakSpace) {
		return noBreakHint
	}
	if m := notColon.FindStringSubmatch(name); m != nil && slices.Contains(known, m[1]) {
		return fmt.Sprintf("write %s: %s", m[1], m[2])
	}
	slices.Sort(known)
	return Hint(name, known, "known here: "+strings.Join(known, ", "))
}

// Hint returns "did you mean ...?" with the known name that is most similar to `name`. Without a similar name, it
// returns `otherwise`.
func Hint(name string, known []string, otherwise string) string {
	if near := Suggest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// Suggest returns the known name that is most similar to `name`, or "" if none differs by only a few edits.
func Suggest(name string, known []string) string {
	best, bestAt := "", 1+len(name)/3
	for _, k := range known {
		if len(name) >= 2*len(k) { // skip the slow comparison: at least len(k) edits are needed
			continue
		}
		if dist := edits(strings.ToLower(name), strings.ToLower(k)); dist <= bestAt && dist < len(k) {
			if best == "" || dist < bestAt {
				best, bestAt = k, dist
			}
		}
	}
	return best
}

func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
