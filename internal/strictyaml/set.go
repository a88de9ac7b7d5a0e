package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// origin is the place from which an override comes. Errors in the override name this place.
type origin struct {
	file  string
	line  int
	field string // the field that contains the override, or ""
}

// place sets file, line and field of an error at the node n. If n is an override, they come from its origin. Otherwise,
// if an overlay was applied, place puts the overlay's name before the message.
func (d *Document) place(e *Error, n *yaml.Node) {
	o, ok := d.overrides[n]
	switch {
	case ok:
		e.File, e.Line = o.file, o.line
		if o.field != "" {
			e.Field = strings.TrimSuffix(o.field+": "+e.Field, ": ")
		}
	case d.layer != "":
		e.Msg = d.layer + ": " + e.Msg
	}
}

// BlameOverrides adds the overrides (--set) to the messages of those errors in err that the overrides cause. `without`
// is the error of the document without the overrides. An error that is also in `without` has another cause.
func BlameOverrides(err, without error, overrides []string) error {
	had := map[string]bool{}
	for _, e := range Errors(without) {
		had[e.Error()] = true
	}
	for _, e := range Errors(err) {
		if !strings.HasPrefix(e.File, setFile) && !had[e.Error()] {
			e.Msg = "with " + setFile + strings.Join(overrides, " "+setFile) + ": " + e.Msg
		}
	}
	return err
}

// setFile is the prefix of an override's name in errors.
const setFile = "--set "

var yamlLine = regexp.MustCompile(`^yaml: (?:line \d+: )?`)

// Set sets one field of the document. assignment has the form "path=value"; the value is YAML.
func (d *Document) Set(assignment string) error {
	o := origin{file: setFile + assignment}
	path, text, ok := strings.Cut(assignment, "=")
	if !ok || path == "" {
		return &Error{File: o.file, Msg: "expected PATH=VALUE", Hint: "for example --set nodes.count=50"}
	}
	var value yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
		return &Error{File: o.file, Msg: "the value is not valid YAML: " + yamlLine.ReplaceAllString(err.Error(), ""), Hint: "quote the value if it contains special characters of YAML"}
	}
	if !errors.Is(dec.Decode(new(yaml.Node)), io.EOF) {
		return &Error{File: o.file, Msg: "the value contains a second YAML document", Hint: "write a single value"}
	}
	set := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}
	if len(value.Content) == 1 {
		set = value.Content[0]
	}
	return d.put(path, set, o)
}

// Overlay sets fields of the document, as Set does. The paths and values are the keys and values of the mapping at
// path; this mapping may be missing. Errors that these values cause elsewhere in the document begin with `layer`.
func (d *Document) Overlay(path, layer string) error {
	d.layer = layer
	from := d.at(path)
	if from == nil || from.Kind != yaml.MappingNode {
		return nil
	}
	budget := maxNodes
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		// Copy the value: put marks it as an override, but aliases may use a value with an anchor elsewhere.
		own, ok := clone(value, &budget)
		if !ok {
			return d.Errorf(path, "", "the values are too large")
		}
		o := origin{file: d.File, line: key.Line, field: d.Errorf(path, "", "").Field}
		if e, ok := d.overrides[key]; ok { // --set has added this key
			o.file, o.line = e.file, e.line
		}
		if err := d.put(key.Value, own, o); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) at(path string) *yaml.Node {
	node := follow(d.root)
	for _, step := range splitPath(path) {
		at := -1
		if node != nil {
			at = position(node, step)
		}
		if at < 0 {
			return nil
		}
		node = follow(node.Content[at])
	}
	return node
}

func clone(n *yaml.Node, budget *int) (*yaml.Node, bool) {
	if *budget--; *budget < 0 {
		return nil, false
	}
	own := *follow(n)
	own.Anchor = ""
	own.Content = make([]*yaml.Node, len(own.Content))
	for i, c := range follow(n).Content {
		var ok bool
		if own.Content[i], ok = clone(c, budget); !ok {
			return nil, false
		}
	}
	return &own, true
}

var isIndex = regexp.MustCompile(`^[0-9]+$`)

// wellFormed matches a valid path: names that are separated by dots or in brackets.
var wellFormed = regexp.MustCompile(`^[^\s.\[\]]+(?:\.[^\s.\[\]]+|\[[^\s.\[\]]+\])*$`)

// put replaces the value at a path, or adds it if it is missing.
func (d *Document) put(path string, set *yaml.Node, o origin) error {
	fail := func(hint, format string, args ...any) error {
		return &Error{File: o.file, Line: o.line, Field: o.field, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	d.markOverride(set, o)
	if !wellFormed.MatchString(path) {
		return fail("such as nodes.count or phases[0].for", "%q is not a path", path)
	}
	steps := splitPath(path)
	node := d.root
	for i, step := range steps {
		if node = follow(node); node == nil || (node.Kind != yaml.MappingNode && node.Kind != yaml.SequenceNode) {
			return fail("write "+strings.Join(steps[:i], ".")+"=VALUE", "%s has no fields", strings.Join(steps[:i], "."))
		}
		last := i == len(steps)-1
		if at := position(node, step); at >= 0 {
			if last {
				node.Content[at] = set
			}
			node = node.Content[at]
			continue
		}
		if node.Kind == yaml.SequenceNode {
			return fail(listHint(node, step), "%s has no item %q", strings.Join(steps[:i], "."), step)
		}
		if !last && isIndex.MatchString(steps[i+1]) {
			list := strings.Join(steps[:i+1], ".")
			return fail(fmt.Sprintf("write the whole list: %s=[{...}]", list), "%s does not exist, so it has no item %s", list, steps[i+1])
		}
		next := set
		if !last {
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			d.markOverride(next, o)
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: step}
		d.markOverride(key, o)
		node.Content = append(node.Content, key, next)
		node = next
	}
	return nil
}

func (d *Document) markOverride(n *yaml.Node, o origin) {
	d.overrides[n] = o
	for _, c := range n.Content {
		d.markOverride(c, o)
	}
}

// listHint returns a hint for an item that does not exist: the names of the list's items, and the name that is most
// similar to the requested one, if any.
func listHint(seq *yaml.Node, asked string) string {
	var names []string
	for _, item := range seq.Content {
		if n := itemName(item); n != "" {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("the list has %d items; the first is [0]", len(seq.Content))
	}
	hint := "it has " + strings.Join(names, ", ")
	if near := Suggest(asked, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return hint
}
