// Package template renders manifests from Go templates with sprig's functions. What a
// template gives depends on its text, its values and a seed alone: functions that read the
// environment or the clock are left out, and those that draw, draw from the seed.
package template

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// Template is one text, of one or several YAML documents. It is for one goroutine.
type Template struct {
	parsed *template.Template
	marked *template.Template // parsed, with marks around values; nil until there is a shape
	quick  quick              // nil: its values are told by the marks
	text   string
	source *rand.PCG
	buffer bytes.Buffer
	bounds *Bounds
}

// Error is at a line of the text, from 1; 0: of no line.
type Error struct {
	Line      int
	Msg, Hint string
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

// name is that of every template, by which its errors are read.
const name = "manifest"

// Parse reads a template. Its error is an *Error.
func Parse(text string) (*Template, error) {
	t := &Template{text: text, source: rand.NewPCG(0, 0), bounds: NewBounds()}
	known := Functions(rand.New(t.source))
	parsed, err := template.New(name).Option("missingkey=error").Funcs(t.bounds.Functions(known)).Parse(text)
	if err != nil {
		return nil, readError(err)
	}
	t.bounds.Count(parsed)
	t.parsed, t.quick = parsed, newQuick(parsed, known)
	return t, nil
}

// ParseValue reads a template of a value whose texts are templates. Its error is an *Error, or says that the value is no
// YAML.
func ParseValue(v any) (*Template, error) {
	text, err := yaml.Marshal(map[string]any{valueField: v})
	if err != nil {
		return nil, fmt.Errorf("write it as YAML: %w", err)
	}
	return Parse(string(text))
}

// valueField is the field of a document that holds the value of ParseValue.
const valueField = "value"

// Value renders what ParseValue has read.
func (t *Template) Value(values map[string]any, seed int64, turn uint64) (any, error) {
	documents, err := t.Documents(values, seed, turn)
	if err != nil {
		return nil, err
	}
	return documents[0][valueField], nil
}

// Documents renders the template and reads its YAML documents, without empty ones, and the items of Lists for these. What is
// drawn depends on seed and turn. Its error is an *Error.
func (t *Template) Documents(values map[string]any, seed int64, turn uint64) ([]map[string]any, error) {
	t.source.Seed(uint64(seed), turn)
	t.buffer.Reset()
	t.bounds.Begin()
	if err := t.parsed.Execute(bounded{&t.buffer}, values); err != nil {
		return nil, readError(err)
	}
	return documents(t.buffer.Bytes())
}

// Bounds of a template, so that a wrong number does not use up the memory. An API server takes requests of 3 MiB.
const (
	mostRendered = 16 << 20 // bytes
	mostRepeated = 4 << 20  // of what a function makes in numbers
)

// bounded refuses to write more than mostRendered.
type bounded struct{ to *bytes.Buffer }

func (b bounded) Write(p []byte) (int, error) {
	if b.to.Len()+len(p) > mostRendered {
		return 0, &Error{Msg: fmt.Sprintf("it renders over %d MiB", mostRendered>>20), Hint: "an API server takes requests of 3 MiB"}
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
			return nil, &Error{Msg: fmt.Sprintf("what it renders is no object: %.60q", fmt.Sprint(one)), Hint: "a manifest has fields: apiVersion, kind, metadata"}
		}
	}
}

// unlisted are the items of a List, as kubectl makes of them; any other document is one itself.
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

// separator is a line between documents.
var separator = regexp.MustCompile(`(?m)^---([ \t].*)?$`)

// Line is where a document begins in the text, from 1; the first line, if the template does not write so many itself.
func (t *Template) Line(document, of int) int {
	begins := []int{0}
	for _, at := range separator.FindAllStringIndex(t.text, -1) {
		if strings.TrimSpace(t.text[begins[len(begins)-1]:at[0]]) == "" {
			begins = begins[:len(begins)-1] // an empty document
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

// The forms of text/template's errors: "template: NAME:LINE: MSG", and of execution "template: NAME:LINE:COLUMN:
// executing "NAME" at <X>: MSG".
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
			e.Msg, e.Hint = fmt.Sprintf("%s: there is no value %q", m[1], key[1]), "give it one: vars: {"+key[1]+": ...}"
		}
	}
	if m := noFunc.FindStringSubmatch(e.Msg); m != nil {
		e.Msg, e.Hint = fmt.Sprintf("there is no function %q", m[1]), "those of sprig, without the ones that read the environment, the clock or the network"
	}
	return e
}

// yamlLine is how go.yaml.in/yaml writes the place of an error.
var yamlLine = regexp.MustCompile(`^(?:yaml: )+(?:line (\d+): )?(.*)$`)

// yamlError is of what was rendered, whose lines are not those of the text: it quotes the line.
func yamlError(err error, rendered []byte) *Error {
	m := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		return &Error{Msg: "what it renders is no YAML: " + err.Error()}
	}
	e := &Error{Msg: "what it renders is no YAML: " + m[2]}
	if line, _ := strconv.Atoi(m[1]); line > 0 {
		if lines := strings.Split(string(rendered), "\n"); line <= len(lines) {
			e.Msg += fmt.Sprintf(", at %.60q", strings.TrimSpace(lines[line-1]))
		}
	}
	return e
}
