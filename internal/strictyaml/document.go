// Package strictyaml reads YAML into structs and refuses what it does not
// know. Each error names file, line and field, and carries a hint: the
// nearest field name, the form a value must have. The document stays at hand
// afterwards, so that validation can point at the line of any field.
//
// A path is the name of a field in --set: "nodes.count",
// "phases[0].for", or "gates.mutating-p99.max", where an item of a list of
// named things is addressed by its name.
package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Document is one YAML document with the positions of its parts.
type Document struct {
	// File is the name used in errors.
	File string
	root *yaml.Node
	// overrides are the nodes of Set and Overlay: errors in them name their origin.
	overrides map[*yaml.Node]origin
	// layer names the overlay, for errors that it causes outside the document.
	layer string
}

// Error is one thing wrong with a document.
type Error struct {
	// File and Line (from 1); Line 0 means the whole file.
	File string
	Line int
	// Field is the path of the field, as in "gates.mutating-p99.max".
	Field string
	// Msg says what is wrong, Hint how to correct it.
	Msg  string
	Hint string
}

// Error is one line: "FILE:LINE: FIELD: MSG (HINT)".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(b.String()) // the message may quote several lines
}

// maxNodes bounds a document after its aliases are followed, so that a few
// lines of nested aliases cannot fill the memory.
const maxNodes = 100_000

// Parse reads one document; others may be empty. It refuses syntax errors, a second
// document, and aliases whose content exceeds maxNodes.
func Parse(file string, data []byte) (doc *Document, err error) {
	d := &Document{File: file, overrides: map[*yaml.Node]origin{}}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	for {
		var node yaml.Node
		err := dec.Decode(&node)
		switch {
		case errors.Is(err, io.EOF) && d.root == nil:
			return nil, &Error{File: file, Msg: "there is nothing in the file", Hint: "write name: value lines"}
		case err != nil && !errors.Is(err, io.EOF):
			return nil, d.syntaxError(data, err)
		}
		if err != nil {
			break
		}
		if len(node.Content) != 1 || isNull(node.Content[0]) {
			continue // a --- with nothing after it
		}
		if d.root != nil {
			return nil, &Error{File: file, Line: node.Line, Msg: "a second YAML document", Hint: "one document per file"}
		}
		d.root = node.Content[0]
	}
	if err := d.checkAliases(); err != nil {
		return nil, err
	}
	if d.root.Kind != yaml.MappingNode {
		return nil, &Error{File: file, Line: d.root.Line, Msg: "expected fields, found " + kindName(d.root), Hint: "write name: value lines"}
	}
	return d, nil
}

// checkAliases refuses merge keys, aliases within their own anchor, and content beyond
// maxNodes.
func (d *Document) checkAliases() error {
	budget := maxNodes
	within := map[*yaml.Node]bool{}
	fail := func(n *yaml.Node, hint, format string, args ...any) error {
		return &Error{File: d.File, Line: n.Line, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		if budget--; budget < 0 {
			return fail(n, "write out less by aliases", "the document is too large once its aliases are followed")
		}
		of := n
		if n.Kind == yaml.AliasNode {
			if of = n.Alias; within[of] {
				return fail(n, "write out what is meant", "the alias *%s stands within its own anchor", n.Value)
			}
			return walk(of)
		}
		within[n] = true
		defer delete(within, n)
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && c.Tag == "!!merge" {
				return fail(c, "write the fields out", "merge keys (<<) are not read")
			}
			if err := walk(c); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(d.root)
}

// Errorf returns an error at the field of the given path. The line is the line of the
// field, or, if the field is missing, of its nearest parent.
func (d *Document) Errorf(path, hint, format string, args ...any) *Error {
	e := &Error{File: d.File, Msg: fmt.Sprintf(format, args...), Hint: hint}
	node := follow(d.root)
	if node != nil {
		e.Line = node.Line
	}
	var where *yaml.Node // the last override on the way
	for _, step := range splitPath(path) {
		at := -1
		if node != nil {
			at = position(node, step)
		}
		if at < 0 { // not written: the line stays the nearest parent's
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

// itemPath is the path of a list's item: by its name if that is unique, else by its
// number.
func itemPath(path string, list *yaml.Node, at int) string {
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

// position is the index in Content of the value that step names, or -1.
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

// itemName returns the `name` of a list's item, which a path may use to address it.
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

// Written reports whether the document has a field of the given path.
func (d *Document) Written(path string) bool { return d.at(path) != nil }

// Text returns the text of the scalar at a path, or "" if there is no scalar.
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

// Errors unpacks a joined error into its single lines.
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
