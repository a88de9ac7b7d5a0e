package importer

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// fields reads the fields of a YAML mapping in a file of the configuration. The draft records which fields were read.
type fields struct {
	draft      *draft
	file, path string
	node       *yaml.Node // nil if the mapping is missing
	base       *fields    // fallback for fields that the mapping lacks; may be nil
}

// use is how the conversion has used a key, a mapping or a list.
type use int

const (
	unused use = iota
	named      // a remark or an error names the node
	opened     // the conversion reads the node's parts one by one
	whole      // the node is used, or left out, with all its parts
)

// use records how the conversion used the node n, which may be nil. A node keeps the largest value that was recorded.
func (d *draft) use(n *yaml.Node, how use) {
	if n != nil {
		d.uses[n] = max(d.uses[n], how)
	}
}

// left adds a remark for each part of the configuration that no conversion used.
func (d *draft) left() {
	var walk func(file string, n *yaml.Node, path string)
	report := func(file string, n *yaml.Node, path string) {
		if d.first(n) { // aliases lead to a node several times
			d.item().remark(nil, placeOf(file, n, path), "left out: the import does not know this field")
		}
	}
	walk = func(file string, n *yaml.Node, path string) {
		switch {
		case n.Kind == yaml.ScalarNode:
		case d.uses[n] == unused:
			report(file, n, path)
		case d.uses[n] != opened:
		case n.Kind == yaml.SequenceNode:
			for i, child := range n.Content {
				walk(file, child, fmt.Sprintf("%s[%d]", path, i))
			}
		default:
			for key, value := range pairs(n) {
				if d.uses[key] == unused {
					report(file, key, join(path, key.Value))
				} else {
					walk(file, value, join(path, key.Value))
				}
			}
		}
	}
	for _, root := range d.roots {
		walk(root.file, root.node, "")
	}
}

// pairs yields the keys and values of a mapping.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; n != nil && i+1 < len(n.Content) && yield(n.Content[i], n.Content[i+1]); {
			i += 2
		}
	}
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// placeOf returns a Remark that has a position but no text. n may be nil.
func placeOf(file string, n *yaml.Node, path string) Remark {
	return Remark{File: file, Line: cmp.Or(n, &yaml.Node{}).Line, Field: path}
}

// maxErrors is the maximum number of errors that an import reports.
const maxErrors = 100

// fail records an error in the configuration. It skips an error that was recorded before.
func (d *draft) fail(at Remark, format string, args ...any) {
	at.Text = fmt.Sprintf(format, args...)
	text := at.String()
	if len(d.errs) > maxErrors || slices.ContainsFunc(d.errs, func(err error) bool { return err.Error() == text }) {
		return
	}
	if len(d.errs) == maxErrors {
		text = fmt.Sprintf("%s: there are more than %d errors (correct these first)", at.File, maxErrors)
	}
	d.errs = append(d.errs, errors.New(text))
}

// fieldsOf returns the fields of the mapping n at a path in the file. A nil or null node has no fields. For any other
// kind of node, fieldsOf records an error.
func (d *draft) fieldsOf(file string, n *yaml.Node, path string) *fields {
	if n != nil && n.Kind != yaml.MappingNode {
		if n.Tag != "!!null" {
			d.fail(placeOf(file, n, path), "must be a mapping (write NAME: VALUE lines)")
		}
		n = nil
	}
	d.use(n, opened)
	return &fields{draft: d, file: file, path: path, node: n}
}

// fail records an error about the value of a key or, if key is empty, about the mapping.
func (f *fields) fail(key, format string, args ...any) { f.draft.fail(f.at(key), format, args...) }

// check records an error about the value of a key, as fail does, unless ok is true.
func (f *fields) check(ok bool, key, format string, args ...any) {
	if !ok {
		f.fail(key, format, args...)
	}
}

// find returns the value of a key, or nil if the key is missing or null. `of` is the mapping that has the key: f, or
// one of the mappings that f overrides.
func (f *fields) find(key string) (value *yaml.Node, of *fields) {
	for of := f; of != nil; of = of.base {
		for name, value := range pairs(of.node) {
			if name.Value != key && !(f.draft.fold && strings.EqualFold(name.Value, key)) {
				continue
			}
			f.draft.use(name, whole)
			if value.Tag != "!!null" {
				return value, of
			}
			break
		}
	}
	return nil, f
}

// over returns the fields of f and, for the keys that f lacks, the fields of base.
func (f *fields) over(base *fields) *fields {
	of := *f
	if of.base != nil {
		base = of.base.over(base)
	}
	of.base = base
	return &of
}

func (f *fields) get(key string) *yaml.Node {
	value, _ := f.find(key)
	return value
}

func (f *fields) has(key string) bool { return f.get(key) != nil }

// ignore marks keys as used, because they need no conversion. If a value was also read as a mapping or list, the method
// `left` still reports its unknown fields.
func (f *fields) ignore(keys ...string) {
	for ; f != nil; f = f.base {
		for _, key := range keys {
			f.draft.use(f.get(key), named)
		}
	}
}

// leave marks the mapping with all its fields as used. Call it after a remark that the mapping is left out.
func (f *fields) leave() {
	for ; f != nil; f = f.base {
		f.draft.use(f.node, whole)
	}
}

// at returns a Remark without text at the position of a key or, if key is empty, of the mapping.
func (f *fields) at(key string) Remark {
	if key == "" {
		return placeOf(f.file, f.node, f.path)
	}
	value, of := f.find(key)
	f.draft.use(value, named)
	return placeOf(of.file, value, join(of.path, key))
}

func (f *fields) text(key, otherwise string) string {
	n := f.get(key)
	switch {
	case n == nil:
		return otherwise
	case n.Kind != yaml.ScalarNode:
		f.fail(key, "must be a single value, not a list or a mapping")
		return otherwise
	}
	return n.Value
}

// scalar parses the value of a key. It returns `otherwise` if the key is missing or the value is invalid. `wrong`
// describes an invalid value.
func scalar[T any](f *fields, key string, otherwise T, parse func(string) (T, error), wrong string) T {
	n := f.get(key)
	if n == nil {
		return otherwise
	}
	v, err := parse(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		f.fail(key, "%q is %s", n.Value, wrong)
		return otherwise
	}
	return v
}

func (f *fields) number(key string, otherwise float64) float64 {
	parse := func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	return scalar(f, key, otherwise, parse, "not a number (write digits, such as 50)")
}

func (f *fields) integer(key string, otherwise int) int {
	v := f.number(key, float64(otherwise))
	if v != float64(int(v)) {
		f.fail(key, "%v is not a whole number (write digits, such as 50)", v)
		return otherwise
	}
	return int(v)
}

func (f *fields) flag(key string, otherwise bool) bool {
	parse := func(text string) (bool, error) { return strconv.ParseBool(strings.ToLower(text)) }
	return scalar(f, key, otherwise, parse, "neither true nor false (write true or false)")
}

func (f *fields) duration(key string, otherwise time.Duration) time.Duration {
	parse := func(text string) (time.Duration, error) {
		v, err := time.ParseDuration(text)
		if v < 0 {
			err = errors.New("negative")
		}
		return v, err
	}
	v := scalar(f, key, otherwise, parse, "not a duration (write it as 30s or 5m)")
	if n := f.get(key); v > maxLength && n != nil && !strings.Contains(strings.ToLower(key), "timeout") {
		if f.draft.first(n) {
			f.draft.item().remark(nil, f.at(key), "24h is used instead of %s: no phase is longer", n.Value)
		}
		return maxLength
	}
	return v
}

// items returns the elements of a list, or nil if the key is missing.
func (f *fields) items(key string) []*yaml.Node {
	n := f.get(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		f.fail(key, "must be a list (write lines that begin with -)")
		return nil
	}
	f.draft.use(n, opened)
	return n.Content
}

// list returns the elements of a list of mappings.
func (f *fields) list(key string) (all []*fields) {
	_, of := f.find(key)
	for i, n := range f.items(key) {
		path := fmt.Sprintf("%s[%d]", join(of.path, key), i)
		if item := f.draft.fieldsOf(of.file, n, path); item.node != nil {
			all = append(all, item)
		} else if n.Tag == "!!null" {
			f.draft.fail(placeOf(of.file, n, path), "it is empty (write its fields, or leave it out)")
		}
	}
	return all
}

func (f *fields) texts(key string) (all []string) {
	for _, n := range f.items(key) {
		all = append(all, n.Value)
	}
	return all
}

func (f *fields) sub(key string) *fields {
	n, of := f.find(key)
	return f.draft.fieldsOf(of.file, n, join(of.path, key))
}

// strings reads a mapping of strings, such as labels.
func (f *fields) strings(key string) map[string]string {
	of := f.sub(key)
	of.leave()
	all := map[string]string{}
	for name, value := range pairs(of.node) {
		all[name.Value] = value.Value
	}
	return all
}

// values decodes a mapping. It returns an empty map if the key is missing.
func (f *fields) values(key string) map[string]any {
	var v any
	if n := f.get(key); n != nil {
		f.draft.use(n, whole)
		if err := n.Decode(&v); err != nil {
			f.fail(key, "%v", err)
		}
	}
	if all, ok := v.(map[string]any); ok {
		return all
	}
	return map[string]any{}
}
