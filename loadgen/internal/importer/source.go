package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/userfile"
)

// source is one configuration file.
type source struct {
	file string
	// lines maps lines of the parsed text to lines of the file, if the file is a template. The index is the parsed
	// line, from 0. The value is the line of the file, from 1; 0 means unknown. nil means that the lines are the same.
	lines []int
	errs  []error // errors in the file's values; after maxErrors errors, one that says so
	// bytes and values are the total sizes of the documents parsed so far, in this file and in earlier modules.
	bytes, values int
	// long reports a duration that is longer than a phase.
	long func(at Remark, n *yaml.Node)
	// fold makes keys case-insensitive.
	fold bool

	roots []*yaml.Node // the documents
	// uses maps keys, mappings and lists to how the conversion has used them. left reports the others.
	uses map[*yaml.Node]use
}

// use is how the conversion has used a key, a mapping or a list.
type use int

const (
	unused use = iota
	named      // a remark or an error names it
	opened     // its parts are used one by one
	whole      // it is used, or left out, with all its parts
)

// use records a use of a node; nil does nothing. A later use that says less changes nothing.
func (s *source) use(n *yaml.Node, how use) {
	if n != nil {
		s.uses[n] = max(s.uses[n], how)
	}
}

// left calls report with each part of the documents that the conversion did not use, and its path.
func (s *source) left(report func(n *yaml.Node, path string)) {
	reported := map[*yaml.Node]bool{} // aliases lead to a node several times
	var walk func(n *yaml.Node, path string)
	once := func(n *yaml.Node, path string) {
		if !reported[n] {
			reported[n] = true
			report(n, path)
		}
	}
	walk = func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			return
		}
		switch s.uses[n] {
		case unused:
			once(n, path)
		case opened:
			for i, child := range n.Content {
				switch {
				case n.Kind == yaml.SequenceNode:
					walk(child, fmt.Sprintf("%s[%d]", path, i))
				case i%2 == 0 && s.uses[child] == unused:
					once(child, join(path, child.Value))
				case i%2 == 1 && s.uses[n.Content[i-1]] != unused:
					walk(child, join(path, n.Content[i-1].Value))
				}
			}
		}
	}
	for _, root := range s.roots {
		walk(root, "")
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// parse reads the only YAML document in text. It returns nil for an empty document.
func (s *source) parse(text []byte) (*yaml.Node, error) {
	if s.bytes += len(text); s.bytes > userfile.Text {
		return nil, fmt.Errorf("%s: the file and the modules before it have more than %d MiB (use smaller files)", s.file, userfile.Text>>20)
	}
	var doc *yaml.Node
	for next, err := range documents(s.file, text, s.lines) {
		switch {
		case err != nil:
			return nil, err
		case doc == nil:
			doc = next.Content[0]
		case next.Content[0].Tag != "!!null": // not a --- with nothing after it
			return nil, errors.New(Remark{File: s.file, Line: s.line(next), Text: "the file contains a second YAML document (keep one document per file)"}.String())
		}
	}
	if doc == nil {
		return nil, nil
	}
	return doc, s.check(doc)
}

// documents yields the YAML documents in text that are not empty. It stops after the first error.
func documents(file string, text []byte, lines []int) iter.Seq2[*yaml.Node, error] {
	return func(yield func(*yaml.Node, error) bool) {
		for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var doc yaml.Node
			switch err := decoder.Decode(&doc); {
			case err == io.EOF:
				return
			case err != nil:
				yield(nil, yamlError(file, text, err, lines))
				return
			case len(doc.Content) > 0 && !yield(&doc, nil):
				return
			}
		}
	}
}

// check returns an error if a document is too large, or if one of its mappings has a key twice.
func (s *source) check(root *yaml.Node) error {
	if err := s.checkSize(root); err != nil {
		return err
	}
	before := len(s.errs)
	s.noKeyTwice(root)
	s.merge(root)
	s.roots = append(s.roots, root)
	return errors.Join(s.errs[before:]...)
}

// merge replaces each alias by the value of its anchor, and each merge key (<<) by the fields that it merges. The mapping's own
// fields win, then the fields of the first merged mapping.
func (s *source) merge(n *yaml.Node) {
	for i, child := range n.Content {
		if child.Kind == yaml.AliasNode {
			n.Content[i] = child.Alias
		}
		s.merge(n.Content[i])
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	var own, merged []*yaml.Node
	known := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag != "!!merge" {
			own = append(own, n.Content[i:i+2]...)
			known[key.Value] = true
			continue
		}
		all := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			all = value.Content
		}
		for _, one := range all {
			if one.Kind != yaml.MappingNode {
				s.fail(key, key.Value, "must be a mapping or a list of mappings")
				continue
			}
			merged = append(merged, one.Content...)
		}
	}
	for i := 0; i+1 < len(merged); i += 2 {
		if key := merged[i].Value; !known[key] {
			own = append(own, merged[i:i+2]...)
			known[key] = true
		}
	}
	n.Content = own
}

func (s *source) noKeyTwice(n *yaml.Node) {
	seen := map[string]bool{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode {
			if seen[child.Value] {
				s.fail(child, child.Value, "the field appears twice (keep one)")
			}
			seen[child.Value] = true
		}
		s.noKeyTwice(child)
	}
}

const (
	// maxNodes is the maximum number of values of all documents. Each use of an alias counts all its values again,
	// because a few lines with aliases of aliases can stand for billions of values.
	maxNodes = 100_000
	// maxErrors is the maximum number of errors that are reported for a file.
	maxErrors = 100
)

// checkSize returns an error if this document and the earlier ones have more than maxNodes values.
func (s *source) checkSize(root *yaml.Node) error {
	var fits func(n *yaml.Node) bool
	fits = func(n *yaml.Node) bool {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		s.values++
		return s.values <= maxNodes && !slices.ContainsFunc(n.Content, func(child *yaml.Node) bool { return !fits(child) })
	}
	if !fits(root) {
		return fmt.Errorf("%s: the file, its aliases and the modules before it have more than %d values (use fewer)", s.file, maxNodes)
	}
	return nil
}

func (s *source) line(n *yaml.Node) int {
	switch {
	case n == nil:
		return 0
	case s.lines == nil:
		return n.Line
	case n.Line-1 < len(s.lines):
		return s.lines[n.Line-1]
	}
	return 0
}

func (s *source) fail(n *yaml.Node, path, format string, args ...any) {
	r := Remark{File: s.file, Line: s.line(n), Field: path, Text: fmt.Sprintf(format, args...)}
	text := r.String()
	if len(s.errs) > maxErrors || slices.ContainsFunc(s.errs, func(err error) bool { return err.Error() == text }) {
		return
	}
	if len(s.errs) == maxErrors {
		text = fmt.Sprintf("%s: there are more than %d errors (correct these first)", s.file, maxErrors)
	}
	s.errs = append(s.errs, errors.New(text))
}

// fields reads the fields of a YAML mapping. Its source records which fields were read.
type fields struct {
	src  *source
	path string
	node *yaml.Node // nil if the mapping is missing
}

// fieldsOf returns the fields of a mapping node. A nil or null node has no fields. For any other kind of node, fieldsOf
// records an error.
func (s *source) fieldsOf(n *yaml.Node, path string) *fields {
	if n != nil && n.Kind != yaml.MappingNode {
		if n.Tag != "!!null" {
			s.fail(n, path, "must be a mapping (write NAME: VALUE lines)")
		}
		n = nil
	}
	s.use(n, opened)
	return &fields{src: s, path: path, node: n}
}

func (f *fields) field(key string) string { return join(f.path, key) }

// fail records an error about the value of a key or, if key is empty, about the mapping.
func (f *fields) fail(key, format string, args ...any) {
	if key == "" {
		f.src.fail(f.node, f.path, format, args...)
		return
	}
	f.src.fail(f.get(key), f.field(key), format, args...)
}

// check records an error about the value of a key, as fail does, unless ok is true.
func (f *fields) check(ok bool, key, format string, args ...any) {
	if !ok {
		f.fail(key, format, args...)
	}
}

// get returns the value of a key, or nil if the key is missing or null.
func (f *fields) get(key string) *yaml.Node {
	if f.node == nil {
		return nil
	}
	for i := 0; i+1 < len(f.node.Content); i += 2 {
		name := f.node.Content[i].Value
		if name != key && !(f.src.fold && strings.EqualFold(name, key)) {
			continue
		}
		f.src.use(f.node.Content[i], whole)
		value := f.node.Content[i+1]
		if value.Tag == "!!null" {
			return nil
		}
		return value
	}
	return nil
}

func (f *fields) has(key string) bool { return f.get(key) != nil }

// ignore marks keys as used, because their fields need no conversion. Unknown fields in a value that was read are reported.
func (f *fields) ignore(keys ...string) {
	for _, key := range keys {
		f.src.use(f.get(key), named)
	}
}

// leave marks the mapping with all its fields as used, because a remark says that it is left out.
func (f *fields) leave() { f.src.use(f.node, whole) }

// at returns a Remark without text at the position of a key. If key is empty, it is the position of the mapping.
func (f *fields) at(key string) Remark {
	if key == "" {
		return Remark{File: f.src.file, Line: f.src.line(f.node), Field: f.path}
	}
	value := f.get(key)
	f.src.use(value, named)
	return Remark{File: f.src.file, Line: f.src.line(value), Field: f.field(key)}
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

// scalar parses the value of a key. It returns otherwise if the key is missing, or if the value is invalid. wrong describes an
// invalid value.
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
	if v > maxLength && f.has(key) && !strings.Contains(strings.ToLower(key), "timeout") {
		f.src.long(f.at(key), f.get(key))
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
	f.src.use(n, opened)
	return n.Content
}

// list returns the elements of a list of mappings.
func (f *fields) list(key string) (all []*fields) {
	for i, n := range f.items(key) {
		path := fmt.Sprintf("%s[%d]", f.field(key), i)
		if of := f.src.fieldsOf(n, path); of.node != nil {
			all = append(all, of)
		} else if n.Tag == "!!null" {
			f.src.fail(n, path, "it is empty (write its fields, or leave it out)")
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

func (f *fields) sub(key string) *fields { return f.src.fieldsOf(f.get(key), f.field(key)) }

// strings reads a mapping of strings, such as labels.
func (f *fields) strings(key string) map[string]string {
	of := f.sub(key)
	if of.node == nil {
		return nil
	}
	of.leave()
	all := map[string]string{}
	for i := 0; i+1 < len(of.node.Content); i += 2 {
		all[of.node.Content[i].Value] = of.node.Content[i+1].Value
	}
	return all
}

// value decodes the value of a key to a Go value. It returns nil if the key is missing.
func (f *fields) value(key string) any {
	n := f.get(key)
	if n == nil {
		return nil
	}
	f.src.use(n, whole)
	var v any
	if err := n.Decode(&v); err != nil {
		f.fail(key, "%v", err)
	}
	return v
}

// values decodes a mapping. It returns an empty map if the key is missing.
func (f *fields) values(key string) map[string]any {
	all, _ := f.value(key).(map[string]any)
	if all == nil {
		return map[string]any{}
	}
	return all
}
