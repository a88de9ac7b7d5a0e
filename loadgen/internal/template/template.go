// Package template renders manifests from Go templates with sprig's functions. The output of a template depends only on
// its text, its values and a seed: random functions use the seed, and functions that read the environment or the clock
// are not available.
package template

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// Template is a parsed template whose output is one or more YAML documents. Only one goroutine may use it at a time.
type Template struct {
	parsed *template.Template
	marked *template.Template // copy of parsed with marks around values; nil until NewShape is called
	quick  quick              // nil if the template is not simple
	text   string
	source *rand.PCG
	buffer bytes.Buffer
	bounds *Bounds
}

// Error is an error in a template. Line is the line in the template's text, counted from 1, or 0 if unknown.
type Error struct {
	Line      int
	Msg, Hint string
	Lacks     string // the name of the missing value, if any
}

func (e *Error) Error() string {
	text := e.Msg
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// name is the name of every template. The patterns for error messages of text/template contain it.
const name = "manifest"

// Parse parses a template. Every error is an *Error.
func Parse(text string) (*Template, error) {
	t := &Template{text: text, source: rand.NewPCG(0, 0), bounds: NewBounds()}
	known := Functions(rand.New(t.source))
	// Keep only the functions that the text can call. All of them take 50 KiB per template.
	maps.DeleteFunc(known, func(function string, _ any) bool { return !strings.Contains(text, function) })
	parsed, err := template.New(name).Option("missingkey=error").Funcs(t.bounds.Functions(known)).Parse(text)
	if err != nil {
		return nil, readError(err)
	}
	t.bounds.Count(parsed)
	t.parsed, t.quick = parsed, newQuick(parsed, known)
	return t, nil
}

// ParseValue parses a value of YAML types in which each string is a template. Every error is an *Error, unless the
// value cannot be encoded as YAML.
func ParseValue(v any) (*Template, error) {
	text, err := yaml.Marshal(map[string]any{valueField: v})
	if err != nil {
		return nil, fmt.Errorf("encode the value as YAML: %w", err)
	}
	return Parse(string(text))
}

// valueField is the document field in which ParseValue stores the value.
const valueField = "value"

// Value renders t, which ParseValue must have returned, and returns the resulting value.
func (t *Template) Value(values map[string]any, seed int64, turn uint64) (any, error) {
	documents, err := t.Documents(values, seed, turn)
	if err != nil {
		return nil, err
	}
	return documents[0][valueField], nil
}

// Documents renders the template and returns its YAML documents. It skips empty documents and replaces each List by its
// items. Random values depend on seed and turn. Every error is an *Error.
func (t *Template) Documents(values map[string]any, seed int64, turn uint64) ([]map[string]any, error) {
	t.source.Seed(uint64(seed), turn)
	t.buffer.Reset()
	t.bounds.Begin()
	if err := t.parsed.Execute(bounded{&t.buffer}, values); err != nil {
		return nil, readError(err)
	}
	return documents(t.buffer.Bytes())
}

// maxRendered and maxRepeated limit a template. They prevent a mistyped number from exhausting memory, and are far
// above the 3 MiB per request that an API server accepts.
const (
	maxRendered = 16 << 20 // maximum size of the rendered text, in bytes
	maxRepeated = 4 << 20  // maximum number of bytes or elements in the result of a function such as repeat or until
)

// bounded is a writer that fails after maxRendered bytes.
type bounded struct{ to *bytes.Buffer }

func (b bounded) Write(p []byte) (int, error) {
	if b.to.Len()+len(p) > maxRendered {
		return 0, &Error{Msg: fmt.Sprintf("the template renders more than %d MiB", maxRendered>>20), Hint: "an API server accepts requests up to 3 MiB"}
	}
	return b.to.Write(p)
}

func documents(text []byte) ([]map[string]any, error) {
	var all []map[string]any
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var one any
		err := decoder.Decode(&one)
		switch object, ok := one.(map[string]any); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, yamlError(err, text)
		case ok:
			all = append(all, unlisted(object)...)
		case one != nil:
			return nil, &Error{Msg: fmt.Sprintf("the template does not render an object: %.60q", fmt.Sprint(one)), Hint: "a manifest has fields: apiVersion, kind, metadata"}
		}
	}
}

// unlisted returns the items of a List, as kubectl does. For any other document it returns a slice with only that document.
func unlisted(document map[string]any) []map[string]any {
	listed, ok := document["items"].([]any)
	if !ok || document["apiVersion"] != "v1" || document["kind"] != "List" {
		return []map[string]any{document}
	}
	items := make([]map[string]any, len(listed))
	for i := range listed {
		if items[i], ok = listed[i].(map[string]any); !ok {
			return []map[string]any{document}
		}
	}
	return items
}

var separator = regexp.MustCompile(`(?m)^---([ \t].*)?$`)

// Line returns the line of the template's text, counted from 1, at which the document with the index `document` begins.
// `of` is the number of rendered documents. If the text contains a different number of documents, Line returns 1.
func (t *Template) Line(document, of int) int {
	begins := []int{0}
	for _, at := range separator.FindAllStringIndex(t.text, -1) {
		if strings.TrimSpace(t.text[begins[len(begins)-1]:at[0]]) == "" {
			begins = begins[:len(begins)-1] // the document is empty
		}
		begins = append(begins, at[1])
	}
	if strings.TrimSpace(t.text[begins[len(begins)-1]:]) == "" {
		begins = begins[:len(begins)-1]
	}
	if len(begins) != of {
		return 1
	}
	head := t.text[:begins[document]]
	rest := t.text[begins[document]:]
	space := rest[:len(rest)-len(strings.TrimLeft(rest, " \t\r\n"))]
	return 1 + strings.Count(head, "\n") + strings.Count(space, "\n")
}

// These patterns match error messages of text/template: "template: NAME:LINE: MSG" and, during execution, "template:
// NAME:LINE:COLUMN: executing "NAME" at <X>: MSG".
var (
	atLine    = regexp.MustCompile(`^template: ` + name + `:(\d+):(?:\d+: )?\s*(.*)$`)
	executing = regexp.MustCompile(`^executing "[^"]*" at (<.*?>): (.*)$`)
	noEntry   = regexp.MustCompile(`^map has no entry for key "(.*)"$`)
	noFunc    = regexp.MustCompile(`^function "(.*)" not defined$`)
)

func readError(err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	e := &Error{Msg: text}
	if m := atLine.FindStringSubmatch(text); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Msg = m[2]
	}
	if m := executing.FindStringSubmatch(e.Msg); m != nil {
		e.Msg = m[1] + ": " + m[2]
		if key := noEntry.FindStringSubmatch(m[2]); key != nil {
			e.Lacks = key[1]
			e.Msg, e.Hint = fmt.Sprintf("%s: there is no value %q", m[1], key[1]), "give it one: vars: {"+key[1]+": ...}"
		}
	}
	if m := noFunc.FindStringSubmatch(e.Msg); m != nil {
		e.Msg, e.Hint = fmt.Sprintf("there is no function %q", m[1]), "use a sprig function that does not read the environment, the clock or the network"
	}
	return e
}

// yamlLine matches error messages of go.yaml.in/yaml.
var yamlLine = regexp.MustCompile(`^(?:yaml: )+(?:line (\d+): )?(.*)$`)

// yamlError converts a YAML error in the rendered text to an *Error. The *Error quotes the line, because the line's
// number differs in the template.
func yamlError(err error, rendered []byte) *Error {
	m := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		return &Error{Msg: "the template does not render valid YAML: " + err.Error()}
	}
	e := &Error{Msg: "the template does not render valid YAML: " + m[2]}
	if line, _ := strconv.Atoi(m[1]); line > 0 {
		if lines := strings.Split(string(rendered), "\n"); line <= len(lines) {
			e.Msg += fmt.Sprintf(", at %.60q", strings.TrimSpace(lines[line-1]))
		}
	}
	return e
}
