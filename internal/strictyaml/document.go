// Package strictyaml reads YAML into structs and refuses unknown fields. Each error names file, line and field, and has
// a hint, such as the most similar field name or the format of the value. The Document remains available after
// decoding, for errors of the validation with the line of a field.
//
// A path names a field, as in --set: "nodes.count", "phases[0].for", or "gates.mutating-p99.max". The last one selects
// an item of a list by the item's name.
package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Document is one YAML document, with the positions of its fields.
type Document struct {
	// File is the name used in errors.
	File string
	// Deprecated lists the fields that Decode found under a former name.
	Deprecated []*Error
	root       *yaml.Node
	begin      int // number of the document's first line in the file
	// overrides contains the nodes that come from Set and Overlay. It maps each node to the origin of the override.
	// Errors in these nodes name the origin.
	overrides map[*yaml.Node]origin
	// layer is the name of the applied overlay, or "". Errors outside the overrides begin with this name.
	layer string
}

// Error is one mistake in a document.
type Error struct {
	// File and Line are the position of the mistake. Lines count from 1; 0 means the whole file.
	File string
	Line int
	// Field is the path of the field, as in "gates.mutating-p99.max".
	Field string
	// Msg says what is wrong. Hint says how to correct it.
	Msg  string
	Hint string
}

// Error returns one line: "FILE:LINE: FIELD: MSG (HINT)".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(cut(e.Field) + ": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(b.String()) // the message may quote several lines
}

// maxNodes is the maximum number of nodes of a document, including the nodes of all expanded aliases. It prevents a few
// lines of nested aliases from filling the memory.
const maxNodes = 100_000

// maxText is the maximum number of bytes in the names and values of a document, including all expanded aliases.
const maxText = 64 << 20

// MaxErrors is the maximum number of errors that Join keeps.
const MaxErrors = 100

// Join joins errors of the document. It keeps the first MaxErrors errors, and counts further errors.
func (d *Document) Join(errs []error) error {
	if more := len(errs) - MaxErrors; more > 0 {
		errs = append(slices.Clone(errs[:MaxErrors]), &Error{File: d.File, Msg: fmt.Sprintf("%d more errors", more), Hint: "correct the errors above first"})
	}
	return errors.Join(errs...)
}

// Parse reads a file with one document. It refuses syntax errors, a second document that is not empty, and more than
// maxNodes nodes.
func Parse(file string, data []byte) (*Document, error) {
	all, err := Documents(file, data)
	switch {
	case err != nil:
		return nil, err
	case len(all) > 1:
		return nil, &Error{File: file, Line: all[1].begin, Msg: "the file contains a second YAML document", Hint: "keep one document per file"}
	}
	return all[0], nil
}

// Documents reads a file with one or more documents, and omits empty documents. It refuses syntax errors, a file
// without documents, and a document with more than maxNodes nodes.
func Documents(file string, data []byte) (all []*Document, err error) {
	for dec := yaml.NewDecoder(strings.NewReader(string(data))); ; {
		var node yaml.Node
		err := dec.Decode(&node)
		switch {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, &Error{File: file, Msg: "the file is empty", Hint: "write name: value lines"}
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, (&Document{File: file}).syntaxError(data, err)
		}
		if len(node.Content) != 1 || isNull(node.Content[0]) {
			continue // an empty document after ---
		}
		d := &Document{File: file, root: node.Content[0], begin: node.Line, overrides: map[*yaml.Node]origin{}}
		if err := d.checkAliases(); err != nil {
			return nil, err
		}
		if d.root.Kind != yaml.MappingNode {
			return nil, &Error{File: file, Line: d.root.Line, Msg: "expected fields, found " + kindName(d.root), Hint: "write name: value lines"}
		}
		all = append(all, d)
	}
}

// checkAliases refuses merge keys, aliases within their own anchor, and documents of more than maxNodes nodes or maxText bytes.
func (d *Document) checkAliases() error {
	budget, text := maxNodes, maxText
	within := map[*yaml.Node]bool{}
	fail := func(n *yaml.Node, hint, format string, args ...any) error {
		return &Error{File: d.File, Line: n.Line, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		budget--
		if text -= len(n.Value); budget < 0 || text < 0 {
			return fail(n, "use fewer aliases", "the document is too large when its aliases are expanded")
		}
		of := n
		if n.Kind == yaml.AliasNode {
			if of = n.Alias; within[of] {
				return fail(n, "repeat the value instead", "the alias *%s is inside its own anchor", n.Value)
			}
			return walk(of)
		}
		within[n] = true
		defer delete(within, n)
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && c.Tag == "!!merge" {
				return fail(c, "repeat the fields instead", "merge keys (<<) are not supported")
			}
			if err := walk(c); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(d.root)
}

// Errorf returns an error for the field with the given path. The error has the line of the field or, if the field is
// missing, the line of its nearest parent.
func (d *Document) Errorf(path, hint, format string, args ...any) *Error {
	e := &Error{File: d.File, Msg: fmt.Sprintf(format, args...), Hint: hint}
	node := follow(d.root)
	if node != nil {
		e.Line = node.Line
	}
	var where *yaml.Node // the innermost override on the path
	for _, step := range splitPath(path) {
		at := -1
		if node != nil {
			at = position(node, step)
		}
		if at < 0 { // the field is missing: keep the line of its nearest parent
			node = nil
			e.Field = join(e.Field, step)
			continue
		}
		next := node.Content[at]
		if node.Kind == yaml.MappingNode {
			e.Field, e.Line = join(e.Field, step), node.Content[at-1].Line
		} else {
			e.Field, e.Line = itemPath(e.Field, node, at), next.Line
		}
		if _, ok := d.overrides[next]; ok {
			where = next
		}
		node = follow(next)
	}
	d.place(e, where)
	return e
}

// maxNamed is the maximum length of a list whose items have names in errors. In longer lists, the search for a name is
// slow.
const maxNamed = 1000

// itemPath returns the path of an item of a list. The path contains the name of the item if the name is unique,
// otherwise its index.
func itemPath(path string, list *yaml.Node, at int) string {
	if at >= maxNamed {
		return fmt.Sprintf("%s[%d]", path, at)
	}
	if name := itemName(list.Content[at]); plainName.MatchString(name) && position(list, name) == at {
		return join(path, name)
	}
	return fmt.Sprintf("%s[%d]", path, at)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func splitPath(path string) []string {
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}

func follow(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// position returns the index in node.Content of the value that a step of a path selects, or -1 if there is no such
// value. A step is a key, the name of a list item, or an index.
func position(node *yaml.Node, step string) int {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return i + 1
			}
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			if itemName(item) == step {
				return i
			}
		}
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return i
		}
	}
	return -1
}

// itemName returns the field `name` of a list item. A path can select the item by this name. It returns "" if the item
// has no such field.
func itemName(item *yaml.Node) string {
	item = follow(item)
	if item == nil || item.Kind != yaml.MappingNode {
		return ""
	}
	if at := position(item, "name"); at >= 0 {
		return item.Content[at].Value
	}
	return ""
}

// Written reports whether the document contains the field with the given path.
func (d *Document) Written(path string) bool { return d.at(path) != nil }

// Text returns the scalar at a path, or "" if the path does not lead to a scalar.
func (d *Document) Text(path string) string {
	if n := d.at(path); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.Value == "" {
			return "nothing"
		}
		return fmt.Sprintf("%q", n.Value)
	}
	return "something else"
}

// Errors returns all values of type *Error in err, which may be a joined error.
func Errors(err error) []*Error {
	var one *Error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, e := range joined.Unwrap() {
			all = append(all, Errors(e)...)
		}
		return all
	}
	if errors.As(err, &one) {
		return []*Error{one}
	}
	return nil
}
