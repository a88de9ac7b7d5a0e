package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"go.yaml.in/yaml/v3"
)

// These marks are characters from Unicode's private use area. In rendered text, beginValue and endValue surround the
// value of a template action. In a Shape, beginScalar and endScalar surround a plain YAML scalar that contains such
// values.
const (
	beginValue, endValue   = "\ue000", "\ue001"
	beginScalar, endScalar = "\ue002", "\ue003"
	marks                  = beginValue + endValue + beginScalar + endScalar
)

// ownMarks matches marks in the text of a template, either as characters or as escapes in YAML strings.
var ownMarks = regexp.MustCompile(`[` + marks + `]|\\(u|U0000)[eE]00[0-3]`)

// Shape holds the YAML documents that all renderings of a template share. Placeholders (slots) stand for the values of
// template actions. With a Shape, a rendering only computes these values. It need not parse YAML; that takes five times
// as long as everything else.
type Shape struct {
	// Documents are the YAML documents, with slots in their strings. Slot returns the text of a slot.
	Documents []map[string]any
	// static is the template's text before, between and after the values.
	static []string
}

// Slot returns the placeholder for the value with index i. Callers may use indexes from Shape.Slots() on for values of
// their own.
func Slot(i int) string { return beginValue + strconv.Itoa(i) + endValue }

// Slots returns the number of slots: one for each value that a template action inserts.
func (s *Shape) Slots() int { return len(s.static) - 1 }

// NewShape renders the template and returns its Shape. It returns nil if a document is not a mapping, has aliases or
// contains marks.
func (t *Template) NewShape(values map[string]any, seed int64, turn uint64) (*Shape, error) {
	if ownMarks.MatchString(t.text) {
		return nil, nil
	}
	if t.marked == nil {
		var err error
		if t.marked, err = mark(t.parsed); err != nil {
			return nil, readError(err)
		}
	}
	static, err := t.pieces(values, seed, turn)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for i, piece := range static {
		if i > 0 {
			text.WriteString(Slot(i - 1))
		}
		text.WriteString(piece)
	}
	s := &Shape{static: static}
	for decoder := yaml.NewDecoder(strings.NewReader(text.String())); ; {
		var node yaml.Node
		if err := decoder.Decode(&node); err != nil {
			break // the end, or invalid YAML, which rendering the template reports
		}
		value, ok := shaped(&node)
		if !ok {
			return nil, nil
		}
		if document, ok := value.(map[string]any); ok {
			s.Documents = append(s.Documents, unlisted(document)...)
		} else if value != nil {
			return nil, nil
		}
	}
	return s, nil
}

// shaped returns the value of a YAML node, with slots. It returns false if the node cannot be part of a Shape, such as an
// alias.
func shaped(n *yaml.Node) (any, bool) {
	switch n.Kind {
	case yaml.DocumentNode:
		return shaped(n.Content[0])
	case yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			v, ok := shaped(value)
			if !ok || key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
				return nil, false
			}
			all[key.Value] = v
		}
		return all, true
	case yaml.SequenceNode:
		all := make([]any, len(n.Content))
		for i := range n.Content {
			v, ok := shaped(n.Content[i])
			if !ok {
				return nil, false
			}
			all[i] = v
		}
		return all, true
	case yaml.ScalarNode:
		if strings.Contains(n.Value, beginValue) {
			if n.Style == 0 { // the YAML type of a plain scalar depends on its whole text
				return beginScalar + n.Value + endScalar, true
			}
			return n.Value, n.Tag == "!!str"
		}
		var v any
		err := n.Decode(&v)
		text, _ := v.(string)
		return v, err == nil && !strings.ContainsAny(text, marks) // a !!binary scalar may contain marks
	}
	return nil, false // an alias
}

// Values renders the template again and returns the values for the slots of s, the Shape of this template. ok is false
// if the static text differs from s, or if YAML or JSON might not read a value as plain text. The caller must then call
// Documents.
func (t *Template) Values(s *Shape, values map[string]any, seed int64, turn uint64) (slots []string, ok bool, err error) {
	slots = make([]string, 0, s.Slots())
	if t.quick != nil {
		t.source.Seed(uint64(seed), turn)
		if slots, ok := t.quick.values(slots, values); ok {
			return slots, !slices.ContainsFunc(slots, func(s string) bool { return !simple(s) }), nil
		}
	}
	text, err := t.markedText(values, seed, turn)
	if err != nil {
		return nil, false, err
	}
	for i, static := range s.static {
		var found bool
		if text, found = strings.CutPrefix(text, static); !found {
			return nil, false, nil
		}
		if i == s.Slots() {
			break
		}
		if text, found = strings.CutPrefix(text, beginValue); !found {
			return nil, false, nil
		}
		value, rest, _ := strings.Cut(text, endValue)
		if !simple(value) {
			return nil, false, nil
		}
		slots, text = append(slots, value), rest
	}
	return slots, text == "", nil
}

// simple reports whether YAML and JSON read text literally, with or without quotes, and next to any other text.
func simple(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '/') {
			return false
		}
	}
	return text != "" && text[0] != '-' && text[0] != '.' // a leading - or . may begin a list or end a document
}

func (t *Template) markedText(values map[string]any, seed int64, turn uint64) (string, error) {
	t.source.Seed(uint64(seed), turn)
	t.buffer.Reset()
	t.bounds.Begin()
	if err := t.marked.Execute(bounded{&t.buffer}, values); err != nil {
		return "", readError(err)
	}
	return t.buffer.String(), nil
}

// pieces renders the template and returns the text before, between and after the values of its actions.
func (t *Template) pieces(values map[string]any, seed int64, turn uint64) (static []string, err error) {
	text, err := t.markedText(values, seed, turn)
	if err != nil {
		return nil, err
	}
	for {
		before, after, found := strings.Cut(text, beginValue)
		static = append(static, before)
		if !found {
			return static, nil
		}
		_, text, _ = strings.Cut(after, endValue)
	}
}

// mark returns a copy of a template in which each action also writes marks before and after its value.
func mark(parsed *template.Template) (*template.Template, error) {
	marked, err := parsed.Clone()
	if err != nil {
		return nil, err
	}
	marked.Funcs(template.FuncMap{"stormglassMark": func(v any) string {
		text := fmt.Sprint(v)
		if strings.ContainsAny(text, marks) {
			text = " " // this text is not simple, so Values tells the caller to use Documents
		}
		return beginValue + text + endValue
	}})
	for _, t := range marked.Templates() {
		if t.Tree != nil {
			tree := t.Tree.Copy()
			markAll(tree)
			if _, err := marked.AddParseTree(t.Name(), tree); err != nil {
				return nil, err
			}
		}
	}
	return marked, nil
}

func markAll(tree *parse.Tree) {
	Walk(tree.Root, func(n parse.Node) {
		if n, ok := n.(*parse.ActionNode); ok && len(n.Pipe.Decl) == 0 {
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{parse.NewIdentifier("stormglassMark").SetPos(n.Pos)}})
		}
	})
}

// JSON is a document of a Shape as JSON text, split at its slots.
type JSON []part

// part is static text, followed by the value of a slot or by a plain scalar that contains slots. The last part of a
// JSON is only text.
type part struct {
	text   []byte
	slot   int // index of the slot; -1 means no slot
	scalar []part
}

// NewJSON encodes a document of a Shape as JSON.
func NewJSON(document map[string]any) (JSON, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("encode the value as JSON: %w", err)
	}
	var all JSON
	text := strings.TrimSuffix(b.String(), "\n")
	for {
		before, after, found := strings.Cut(text, `"`+beginScalar)
		all = append(all, cut(before)...)
		if !found {
			return all, nil
		}
		scalar, rest, _ := strings.Cut(after, endScalar+`"`)
		last := &all[len(all)-1]
		last.scalar, text = cut(scalar), rest
	}
}

func cut(text string) (all []part) {
	for {
		before, after, found := strings.Cut(text, beginValue)
		if !found {
			return append(all, part{text: []byte(before), slot: -1})
		}
		number, rest, _ := strings.Cut(after, endValue)
		slot, _ := strconv.Atoi(number)
		all, text = append(all, part{text: []byte(before), slot: slot}), rest
	}
}

// Append appends the document to b, with the values `slots` in its slots. The function simple must return true for each
// value.
func (j JSON) Append(b []byte, slots []string) []byte {
	for i := range j {
		p := &j[i]
		b = append(b, p.text...)
		switch {
		case p.scalar != nil:
			begin := len(b)
			b = JSON(p.scalar).Append(append(b, '"'), slots)
			if text := b[begin+1:]; letter(text[0]) && words[string(text)] == "" {
				b = append(b, '"') // the common case: a string
			} else {
				b = appendScalar(b[:begin], string(text))
			}
		case p.slot >= 0:
			b = append(b, slots[p.slot]...)
		}
	}
	return b
}

// words maps plain YAML scalars that mean true, false or null to JSON.
var words = map[string]string{
	"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false", "null": "null", "Null": "null", "NULL": "null",
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// appendScalar appends a plain YAML scalar to b, as a JSON value of the scalar's YAML type. text is escaped as in a
// JSON string.
func appendScalar(b []byte, text string) []byte {
	switch word := words[text]; {
	case word != "":
		return append(b, word...)
	case letter(text[0]):
		return append(append(append(b, '"'), text...), '"')
	case wholeNumber(text):
		return append(b, text...)
	}
	quoted := `"` + text + `"`
	var plain string
	var v any
	if json.Unmarshal([]byte(quoted), &plain) == nil && yaml.Unmarshal([]byte(plain), &v) == nil {
		if data, err := json.Marshal(v); err == nil {
			return append(b, data...)
		}
	}
	return append(b, quoted...)
}

// wholeNumber reports whether text is a non-negative integer in JSON syntax that a float64 represents exactly.
func wholeNumber(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return len(text) <= 15 && (text[0] != '0' || len(text) == 1)
}
