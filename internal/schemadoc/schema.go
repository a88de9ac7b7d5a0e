package schemadoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Draft is the JSON Schema dialect of the generated schemas.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Part is a JSON Schema, or a part of one.
type Part = map[string]any

// Schema generates the JSON Schema of a file format. The schema has a definition for the root type and for every struct
// that it contains, directly or indirectly. The comment of a field is its description. Fields without omitempty are
// required. The tag `zero` of a field contains the default; the schema then refuses a zero.
type Schema struct {
	// File is the path of the schema with which Check compares. Title is the title of the schema.
	File, Title string
	// Tag is the struct tag that names the fields.
	Tag string
	// Scalars maps a type that is not a struct to its schema.
	Scalars map[string]Part
	// Fields holds additional keywords for the schema of a field, by "Type.name". Types holds additional keywords for
	// the schema of a type, by name.
	Fields, Types map[string]Part
	// Given holds definitions that are not generated, by the name of their type.
	Given map[string]any

	types Page
	defs  map[string]any
	errs  []error
}

// Read parses the structs of the Go package in dir.
func (s *Schema) Read(dir string) error { return s.types.Read(dir) }

// Build returns the schema of the root type.
func (s *Schema) Build(root string) (Part, error) {
	s.defs, s.errs = map[string]any{}, nil
	whole := s.object(root)
	whole["$schema"], whole["title"] = Draft, s.Title
	delete(s.defs, root)
	whole["$defs"] = s.defs
	s.unused()
	return whole, errors.Join(s.errs...)
}

// Check fails the test if the schema of the root type differs from the file. If update is set, it rewrites the file
// instead.
func (s *Schema) Check(t *testing.T, root string, update bool) {
	t.Helper()
	whole, err := s.Build(root)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(whole); err != nil {
		t.Fatal(err)
	}
	if update {
		if err := os.WriteFile(s.File, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(s.File); err != nil || !bytes.Equal(have, text.Bytes()) {
		t.Errorf("%s differs from the Go types: run the test with -update to rewrite it (%v)", s.File, err)
	}
}

// unused adds an error for each key of Fields or Types that does not match a field or type.
func (s *Schema) unused() {
	for key := range s.Fields {
		name, field, _ := strings.Cut(key, ".")
		if !slices.Contains(s.fieldNames(name), field) {
			s.errs = append(s.errs, fmt.Errorf("there is no field %s", key))
		}
	}
	for name := range s.Types {
		if s.types.structs[name] == nil {
			s.errs = append(s.errs, fmt.Errorf("there is no type %s", name))
		}
	}
}

// object builds the definition of a struct and adds it to the schema.
func (s *Schema) object(name string) Part {
	def := Part{"type": "object", "additionalProperties": false}
	s.defs[name] = def
	properties, required := map[string]any{}, []string{}
	s.properties(name, func(field, option string, p Part) {
		properties[field] = p
		if option == "" {
			required = append(required, field)
		}
	})
	def["properties"] = properties
	if len(required) > 0 {
		slices.Sort(required)
		def["required"] = required
	}
	if about := s.types.comments[name]; about != "" {
		def["description"] = plainText(about)
	}
	maps.Copy(def, s.Types[name])
	return def
}

// fieldNames returns the names of a struct's fields in the file format.
func (s *Schema) fieldNames(name string) (all []string) {
	s.properties(name, func(field, _ string, _ Part) { all = append(all, field) })
	return all
}

// properties calls the function `each` for every field of a struct, including fields of embedded structs.
func (s *Schema) properties(name string, each func(field, option string, p Part)) {
	if s.types.structs[name] == nil {
		return
	}
	for _, f := range s.types.structs[name].Fields.List {
		if len(f.Names) == 0 {
			if inner, ok := f.Type.(*ast.Ident); ok {
				s.properties(inner.Name, each)
			}
			continue
		}
		if f.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		field, option, _ := strings.Cut(tag.Get(s.Tag), ",")
		if field == "" || field == "-" {
			continue
		}
		p := s.typed(f.Type)
		if about := plainText(withoutName(oneLine(f.Doc.Text()+" "+f.Comment.Text()), f.Names[0].Name)); about != "" {
			p["description"] = about
			if m := quotedDefault.FindStringSubmatch(about); m != nil {
				p["default"] = m[1]
			}
		}
		if zero := tag.Get("zero"); zero != "" {
			s.zero(p, zero)
		}
		maps.Copy(p, s.Fields[name+"."+field])
		each(field, option, p)
	}
}

// quotedDefault matches the value that a comment marks as the default.
var quotedDefault = regexp.MustCompile(`"([^"]+)" \([^()]*\bdefault\b`)

// plainText returns the text of a comment as a sentence.
func plainText(comment string) string {
	if comment == "" {
		return ""
	}
	comment = strings.ReplaceAll(comment, `\|`, "|")
	return strings.ToUpper(comment[:1]) + comment[1:]
}

// typed returns the schema of a type expression. The schema of a string accepts any scalar, because strictyaml decodes
// any scalar into a string.
func (s *Schema) typed(e ast.Expr) Part {
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.typed(e.X)
	case *ast.ArrayType:
		return Part{"type": "array", "items": s.typed(e.Elt)}
	case *ast.MapType:
		return Part{"type": "object", "additionalProperties": s.typed(e.Value)}
	case *ast.SelectorExpr:
		return s.typed(e.Sel)
	case *ast.Ident:
		return s.named(e.Name)
	}
	return Part{}
}

func (s *Schema) named(name string) Part {
	switch {
	case s.Given[name] != nil:
		s.give(name)
	case s.Scalars[name] != nil:
		s.defs[name] = s.Scalars[name]
	case s.types.structs[name] != nil:
		if s.defs[name] == nil {
			s.object(name)
		}
	case name == "any":
		return Part{}
	case name == "bool":
		return Part{"type": "boolean"}
	case name == "float64":
		return Part{"type": "number"}
	case name == "string":
		return Part{"type": []string{"string", "number", "boolean"}}
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		return Part{"type": "integer"}
	default:
		s.errs = append(s.errs, fmt.Errorf("the type %s has no schema", name))
		return Part{}
	}
	return Part{"$ref": "#/$defs/" + name}
}

// give adds a definition from Given to the schema, and all definitions to which it refers.
func (s *Schema) give(name string) {
	if s.defs[name] != nil {
		return
	}
	s.defs[name] = s.Given[name]
	text, err := json.Marshal(s.Given[name])
	s.errs = append(s.errs, err)
	for _, m := range regexp.MustCompile(`"#/\$defs/(\w+)"`).FindAllSubmatch(text, -1) {
		s.give(string(m[1]))
	}
}

// noZero is a schema that refuses a zero scalar in any notation.
var noZero = Part{"anyOf": []any{Part{"const": 0}, Part{"type": "string", "pattern": `^[-+]?0*\.?0*([A-Za-zµμ]+|/[smh])?$`}}}

// zero applies a tag `zero:"DEFAULT; HINT"` to the schema p. It makes p refuse zero or, for a list, no items. If
// DEFAULT is a value of the type, it becomes the default of p.
func (s *Schema) zero(p Part, tag string) {
	text, _, _ := strings.Cut(tag, ";")
	number, err := strconv.ParseFloat(text, 64)
	ref, _ := p["$ref"].(string)
	scalar := s.Scalars[strings.TrimPrefix(ref, "#/$defs/")]
	switch pattern, _ := scalar["pattern"].(string); {
	case p["type"] == "integer" || p["type"] == "number":
		if p["not"] = (Part{"const": 0}); err == nil {
			p["default"] = number
		}
	case p["type"] == "array":
		p["minItems"] = 1
	case pattern != "":
		if p["not"] = noZero; regexp.MustCompile(pattern).MatchString(text) {
			p["default"] = text
		}
	}
}
