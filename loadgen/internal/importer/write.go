package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// mapping is a YAML mapping that keeps the order of its fields.
type mapping struct{ *yaml.Node }

func newMapping() *mapping { return &mapping{&yaml.Node{Kind: yaml.MappingNode}} }

// block returns a YAML mapping in block style. pairs are alternating names and values. It omits empty values.
func block(pairs ...any) *mapping { return newMapping().add(pairs...) }

// flow returns a YAML mapping in flow style, {a: 1, b: 2}. pairs are alternating names and values. Values may be empty.
func flow(pairs ...any) *mapping {
	m := newMapping()
	m.Style = yaml.FlowStyle
	for i := 0; i < len(pairs); i += 2 {
		m.set(pairs[i].(string), pairs[i+1])
	}
	return m
}

// add adds the fields in pairs, except those with an empty value: zero, nil, false, or a list or map without elements.
func (m *mapping) add(pairs ...any) *mapping {
	for i := 0; i < len(pairs); i += 2 {
		v := reflect.ValueOf(pairs[i+1])
		list := v.Kind() == reflect.Slice || v.Kind() == reflect.Map
		if v.IsValid() && !v.IsZero() && !(list && v.Len() == 0) {
			m.set(pairs[i].(string), pairs[i+1])
		}
	}
	return m
}

// set adds a field or replaces its value. It returns the key's node, to which comments can be added.
func (m *mapping) set(key string, value any) *yaml.Node {
	m.replace(key, key, value)
	if m.key(key) == nil {
		m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, toNode(value))
	}
	return m.key(key)
}

// key returns the node of a key, to which comments can be added, or nil if the field is missing.
func (m *mapping) key(name string) *yaml.Node {
	for key := range pairs(m.Node) {
		if key.Value == name {
			return key
		}
	}
	return nil
}

// value returns the value of a field, or nil if the field is missing.
func (m *mapping) value(name string) *yaml.Node {
	if at := slices.Index(m.Content, m.key(name)); at >= 0 {
		return m.Content[at+1]
	}
	return nil
}

// replace replaces the field `key` by a field `other`, at the same position. It does nothing if there is no such field.
func (m *mapping) replace(key, other string, value any) {
	if at := slices.Index(m.Content, m.key(key)); at >= 0 {
		m.Content[at].Value, m.Content[at+1] = other, toNode(value)
	}
}

func (m *mapping) bytes() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(m.Node); err != nil {
		return nil, fmt.Errorf("write the scenario: %w", err)
	}
	return b.Bytes(), nil
}

func toNode(value any) *yaml.Node {
	switch v := value.(type) {
	case *yaml.Node:
		return v
	case *mapping:
		return v.Node
	case []*mapping:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, m := range v {
			list.Content = append(list.Content, m.Node)
		}
		return list
	}
	n := new(yaml.Node)
	_ = n.Encode(value) // cannot fail: values are of basic types or were decoded from YAML
	switch v := value.(type) {
	case []string:
		n.Style = yaml.FlowStyle
	case string:
		if strings.Contains(v, "\n") {
			n.Style = yaml.LiteralStyle
		}
	}
	return n
}

// when returns value if the condition holds, and otherwise nil, which block and add leave out.
func when(condition bool, value any) any {
	if condition {
		return value
	}
	return nil
}

// distinct returns the sorted texts without duplicates.
func distinct(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

// commentWidth is the maximum width of comment lines.
const commentWidth = 110

// addComment adds a comment before a node, after the comments that the node already has. It wraps the comment.
func addComment(n *yaml.Node, text string) {
	var lines []string
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > commentWidth && line != "#" {
			lines = append(lines, line)
			line = "#  "
		}
		line += " " + word
	}
	appendComment(n, strings.Join(append(lines, line), "\n"))
}

// appendComment adds the lines of a comment before a node.
func appendComment(n *yaml.Node, lines string) {
	n.HeadComment = strings.Trim(n.HeadComment+"\n"+lines, "\n")
}

// maxName is the maximum length of names of phases, loads and gates.
const maxName = 40

var (
	camelCase  = regexp.MustCompile(`([a-z])([A-Z])`)
	notInNames = regexp.MustCompile(`[^a-z0-9]+`)
)

// nameOf converts a text to a valid name in a scenario: lower-case letters, digits and "-", at most maxName bytes.
func nameOf(text string) string {
	text = strings.ToLower(camelCase.ReplaceAllString(text, "$1-$2"))
	name := strings.Trim(notInNames.ReplaceAllString(text, "-"), "-")
	return cmp.Or(strings.TrimRight(name[:min(len(name), maxName)], "-"), "unnamed")
}

// unique returns a valid name that is derived from name and is not in `taken`. It adds the result to `taken`.
func unique(name string, taken map[string]bool) string {
	name = nameOf(name)
	for n, base := 2, name; taken[name]; n++ {
		suffix := "-" + strconv.Itoa(n)
		name = strings.TrimRight(base[:min(len(base), maxName-len(suffix))], "-") + suffix
	}
	taken[name] = true
	return name
}

// withSuffix appends "-" and the suffix, and shortens name so that the result has at most maxName bytes.
func withSuffix(name, suffix string) string {
	return strings.TrimRight(name[:min(len(name), maxName-len(suffix)-1)], "-") + "-" + suffix
}

// maxLength is the maximum length of a phase.
const maxLength = 24 * time.Hour

// length formats a duration as the length of a phase, limited to between 1s and maxLength.
func length(d time.Duration) string {
	return scenario.Duration(min(max(d, time.Second), maxLength)).String()
}

func perSecond(rate float64) string { return strconv.FormatFloat(rate, 'g', 6, 64) + "/s" }
