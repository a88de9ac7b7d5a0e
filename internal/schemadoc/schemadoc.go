// Package schemadoc writes reference pages of file formats from the Go types
// that define them and their comments, so that the pages cannot drift. Tests
// use it: a page is a golden file.
package schemadoc

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Page is a reference page: a head, then a list of fields for the root type and
// for every struct reached from it.
type Page struct {
	// File is the page, Head the text before the tables.
	File string
	Head []byte
	// Tag is the struct tag that names the fields: "json" or "yaml".
	Tag string
	// Scalars are what named types that are no structs are called.
	Scalars map[string]string
	// Unit is a field's unit, from its struct, key and type; nil leaves it out.
	Unit func(of, key, text string) string

	structs  map[string]*ast.StructType
	comments map[string]string
	written  []string
	out      bytes.Buffer
	errs     []error
}

// Read takes in the structs of the package in dir: those named, or all.
func (p *Page) Read(dir string, names ...string) error {
	if p.structs == nil {
		p.structs, p.comments = map[string]*ast.StructType{}, map[string]string{}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok || len(names) > 0 && !slices.Contains(names, ts.Name.Name) {
					continue
				}
				if st, ok := ts.Type.(*ast.StructType); ok {
					p.structs[ts.Name.Name], p.comments[ts.Name.Name] = st, oneLine(g.Doc.Text())
				}
			}
		}
	}
	return nil
}

// Text is the page, from the root type on. Fields without a comment are errors.
func (p *Page) Text(root string) ([]byte, error) {
	p.out.Write(p.Head)
	p.table(root)
	return p.out.Bytes(), errors.Join(p.errs...)
}

// Check compares the page with its file, or with -update rewrites it.
func (p *Page) Check(t *testing.T, root string, update bool) {
	t.Helper()
	text, err := p.Text(root)
	if err != nil {
		t.Error(err)
	}
	if update {
		if err := os.WriteFile(p.File, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(p.File)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, text) {
		t.Errorf("%s differs from the types: the test with -update rewrites it", p.File)
	}
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

// table writes the fields of a type, then those of the types in it.
func (p *Page) table(name string) {
	p.written = append(p.written, name)
	lead := withoutName(p.comments[name], name)
	if first, _, _ := strings.Cut(lead, " "); lead != "" && !strings.Contains(strings.TrimRight(first, ".:"), ".") { // no file's name
		lead = strings.ToUpper(lead[:1]) + lead[1:]
	}
	fmt.Fprintf(&p.out, "\n## %s\n\n%s\n\n", name, lead)
	var next []string
	p.rows(name, &next)
	for _, n := range next {
		if !slices.Contains(p.written, n) {
			p.table(n)
		}
	}
}

// rows writes a type's fields, those of embedded types in their place.
func (p *Page) rows(name string, next *[]string) {
	for _, f := range p.structs[name].Fields.List {
		text, inner := p.typeText(f.Type)
		if len(f.Names) == 0 {
			p.rows(inner, next)
			continue
		}
		if f.Tag == nil {
			continue // not part of the format
		}
		key, option, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get(p.Tag), ",")
		meaning := withoutName(oneLine(f.Doc.Text()+" "+f.Comment.Text()), f.Names[0].Name)
		if meaning == "" {
			p.errs = append(p.errs, fmt.Errorf("%s.%s has no comment that says what it means", name, f.Names[0].Name))
		}
		optional := ""
		if p.Unit != nil {
			if unit := p.Unit(name, key, text); unit != "" {
				text += ", " + unit
			}
			if strings.Contains(option, "omitempty") {
				optional = "?"
			}
		}
		fmt.Fprintf(&p.out, "- `%s`%s (%s): %s\n", key, optional, text, meaning)
		if inner != "" {
			*next = append(*next, inner)
		}
	}
}

// withoutName returns a comment without the name it begins with, and without a
// verb that says no more than "is": the page has the name beside it.
func withoutName(comment, name string) string {
	for _, verb := range []string{" is ", " are ", " holds ", ": "} {
		if rest, ok := strings.CutPrefix(comment, name+verb); ok {
			return rest
		}
	}
	for _, verb := range []string{" counts ", " lists ", " names "} {
		if strings.HasPrefix(comment, name+verb) {
			return strings.TrimPrefix(comment, name+" ")
		}
	}
	return comment
}

// typeText names a type as the format knows it, and the struct in it, if any.
func (p *Page) typeText(e ast.Expr) (text, inner string) {
	object := "object of "
	if p.Tag == "yaml" {
		object = "map of "
	}
	switch e := e.(type) {
	case *ast.StarExpr:
		text, inner = p.typeText(e.X)
		if p.Tag == "json" {
			text += " or null"
		}
		return text, inner
	case *ast.ArrayType:
		text, inner = p.typeText(e.Elt)
		return text + "[]", inner
	case *ast.MapType:
		text, inner = p.typeText(e.Value)
		return object + text, inner
	case *ast.SelectorExpr:
		if e.Sel.Name == "Time" {
			return "time", ""
		}
		return p.typeText(e.Sel)
	case *ast.Ident:
		switch {
		case p.Scalars[e.Name] != "":
			return p.Scalars[e.Name], ""
		case p.structs[e.Name] != nil:
			return "[" + e.Name + "](#" + strings.ToLower(e.Name) + ")", e.Name
		case strings.HasPrefix(e.Name, "int"), strings.HasPrefix(e.Name, "uint"):
			return "integer", ""
		case e.Name == "float64":
			return "number", ""
		}
		return e.Name, ""
	}
	return "?", ""
}
