// Package schemadoc generates reference pages and JSON Schemas of file formats from Go types and their comments. Tests
// compare the result with the checked-in page or schema: these files cannot differ from the types.
package schemadoc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Marker is the line that separates the hand-written head of a page from the generated part.
const Marker = "<!-- generated from here on -->\n"

// Page is a reference page. It consists of a hand-written head, which ends with Marker, and a list of fields for each
// root type and for each struct that a root type contains, directly or indirectly.
type Page struct {
	File string
	// Intro is generated text between Marker and the lists.
	Intro []byte
	// Tag is the struct tag that names the fields: "json" or "yaml".
	Tag string
	// Scalars maps a Go type that is not a struct to its name on the page.
	Scalars map[string]string
	// Untyped lists the types that the page omits. For any other type, the page shows the name in parentheses after the
	// field. The head of the page must explain this.
	Untyped []string
	// Documented reports whether every field must have a comment. If false, the page lists consecutive fields without a
	// comment on one line.
	Documented bool

	structs  map[string]*ast.StructType
	comments map[string]string
	written  []string
	fields   map[string][]field // descriptions of the fields written so far, by field name
	out      bytes.Buffer
	errs     []error
}

// field is the description of a field on a page: `of` is the type that has the field, `text` is the text for the
// field's own type, and `meaning` is the field's meaning.
type field struct{ of, text, meaning string }

// Read parses the named structs of the Go package in dir, or all structs if there are no names.
func (p *Page) Read(dir string, names ...string) error {
	if p.structs == nil {
		p.structs, p.comments, p.fields = map[string]*ast.StructType{}, map[string]string{}, map[string][]field{}
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

// Check fails the test if the generated page for the root types differs from the file. If update is set, it rewrites
// the file instead. With Documented, a field without a comment is an error.
func (p *Page) Check(t *testing.T, update bool, roots ...string) {
	t.Helper()
	have, err := os.ReadFile(p.File)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := bytes.Cut(have, []byte(Marker))
	if !ok {
		t.Fatalf("%s has no line %s", p.File, Marker)
	}
	p.out.Write(head)
	p.out.WriteString(Marker)
	p.out.Write(p.Intro)
	for _, root := range roots {
		p.table(root)
	}
	text := p.out.Bytes()
	if err := errors.Join(p.errs...); err != nil {
		t.Error(err)
	}
	if update {
		if err := os.WriteFile(p.File, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(have, text) {
		t.Errorf("%s differs from the Go types: run the test with -update to rewrite it", p.File)
	}
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

func (p *Page) table(name string) {
	p.written = append(p.written, name)
	lead := strings.TrimPrefix(withoutName(p.comments[name], name), name+" ")
	if first, _, _ := strings.Cut(lead, " "); lead != "" && !strings.Contains(strings.TrimRight(first, ".:"), ".") { // keep the case of a file name
		lead = strings.ToUpper(lead[:1]) + lead[1:]
	}
	fmt.Fprintf(&p.out, "\n## %s\n\n%s\n\n", name, p.linked(lead))
	rows := rows{again: map[string][]string{}}
	p.rows(name, name, &rows)
	rows.endLine(&p.out)
	var again []string
	for _, of := range slices.Sorted(maps.Keys(rows.again)) {
		again = append(again, fmt.Sprintf("[%s](#%s): %s", of, strings.ToLower(of), strings.Join(rows.again[of], ", ")))
	}
	if len(again) > 0 {
		fmt.Fprintf(&p.out, "- as in %s\n", strings.Join(again, "; "))
	}
	for _, n := range rows.next {
		if !slices.Contains(p.written, n) {
			p.table(n)
		}
	}
}

// rows collects the lines of the list for one type.
type rows struct {
	// plain holds the fields without a comment that are not yet written. `again` holds fields that the list of an
	// earlier type already describes, by that type.
	plain []string
	again map[string][]string
	next  []string // structs that are the types of the fields
}

func (r *rows) endLine(out *bytes.Buffer) {
	if len(r.plain) > 0 {
		fmt.Fprintf(out, "- %s\n", strings.Join(r.plain, ", "))
	}
	r.plain = nil
}

// rows writes the fields of a struct. owner is the struct whose list rows writes: the struct itself, or the struct that
// embeds it. For an embedded struct that already has a list, rows writes only a link.
func (p *Page) rows(name, owner string, rows *rows) {
	for _, f := range p.structs[name].Fields.List {
		text, inner := p.typeText(f.Type)
		if len(f.Names) == 0 && slices.Contains(p.written, inner) {
			rows.endLine(&p.out)
			fmt.Fprintf(&p.out, "- all fields of %s\n", text)
			continue
		}
		if len(f.Names) == 0 {
			p.rows(inner, owner, rows)
			continue
		}
		if f.Tag == nil {
			continue // not part of the format
		}
		key, option, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get(p.Tag), ",")
		if key == "-" {
			continue
		}
		meaning := withoutName(oneLine(f.Doc.Text()+" "+f.Comment.Text()), f.Names[0].Name)
		label := "`" + key + "`"
		if p.Tag == "json" && strings.Contains(option, "omitempty") {
			label, text = label+"?", strings.TrimSuffix(text, " or null")
		}
		if inner != "" {
			rows.next = append(rows.next, inner)
		}
		if of := p.describedIn(key, owner, text, meaning); of != "" {
			rows.again[of] = append(rows.again[of], label)
			continue
		}
		if meaning != "" {
			p.fields[key] = append(p.fields[key], field{of: owner, text: text, meaning: meaning})
		}
		switch {
		case meaning != "":
			rows.endLine(&p.out)
			fmt.Fprintf(&p.out, "- %s%s: %s\n", label, p.inBrackets(text), p.linked(meaning))
		case p.Documented:
			p.errs = append(p.errs, fmt.Errorf("%s.%s has no comment that explains it", name, f.Names[0].Name))
		default:
			rows.plain = append(rows.plain, label+p.inBrackets(text))
		}
	}
}

// describedIn returns another type whose list describes a field with the same key, type and meaning, or "". It returns
// "" for a meaning of one word. For a field without a comment, it considers only the first field with the key.
func (p *Page) describedIn(key, owner, text, meaning string) string {
	for i, f := range p.fields[key] {
		same := f.meaning == meaning && strings.Contains(meaning, " ")
		if f.of != owner && f.text == text && (same || meaning == "" && i == 0) {
			return f.of
		}
	}
	return ""
}

// inBrackets returns the text that the page shows after a field's name: the field's type in parentheses, or "" if the
// page omits the type.
func (p *Page) inBrackets(text string) string {
	if slices.Contains(p.Untyped, text) {
		return ""
	}
	return " (" + text + ")"
}

// docsPath matches the path of a page in a comment, such as docs/reference/faults.md#the-kinds.
var docsPath = regexp.MustCompile(`\bdocs/([a-z/-]+)\.md(#[a-z-]+)?`)

// linked replaces the paths of pages in a comment with links that are relative to the page.
func (p *Page) linked(text string) string {
	_, page, _ := strings.Cut(filepath.ToSlash(p.File), "docs/")
	return docsPath.ReplaceAllStringFunc(text, func(path string) string {
		m := docsPath.FindStringSubmatch(path)
		to, err := filepath.Rel(filepath.Dir(page), m[1]+".md")
		if err != nil {
			p.errs = append(p.errs, err)
		}
		name := cmp.Or(strings.TrimPrefix(m[2], "#"), filepath.Base(m[1]))
		return fmt.Sprintf("[%s](%s%s)", strings.ReplaceAll(name, "-", " "), filepath.ToSlash(to), m[2])
	})
}

// withoutName removes the field's name from the beginning of a comment, together with a verb that means "is", because
// the page shows the name before the comment.
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

// typeText returns the name of a type on the page, and the name of the struct that the type contains, if any.
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
