package strictyaml

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// marks are where the YAML parser stopped, with lines from 1. Its error text
// has another line: that of the construct it was reading, counted from 0.
type marks struct {
	problem       string
	line, column  int // of the problem; column from 0
	began         int // line where the construct being read began
	offset        int // of a byte that is not text; 0 for other problems
	event         int // line of the last event
	unknownLayout bool
}

// marksOf reads the parser's own fields: it tells them no other way. Should a
// later version of the library name them otherwise, errors lose their line.
func marksOf(dec *yaml.Decoder) (m marks) {
	defer func() {
		if recover() != nil {
			m = marks{unknownLayout: true}
		}
	}()
	outer := reflect.ValueOf(dec).Elem().FieldByName("parser").Elem()
	inner := outer.FieldByName("parser")
	mark := func(of reflect.Value, name, field string) int {
		return int(of.FieldByName(name).FieldByName(field).Int())
	}
	return marks{
		problem: inner.FieldByName("problem").String(),
		line:    mark(inner, "problem_mark", "line") + 1, column: mark(inner, "problem_mark", "column"),
		began:  mark(inner, "context_mark", "line") + 1,
		offset: int(inner.FieldByName("problem_offset").Int()),
		event:  mark(outer.FieldByName("event"), "start_mark", "line") + 1,
	}
}

var unknownAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)

// syntaxError is an error of the parser in plain words, at the line where the
// file is wrong: that is where an unclosed bracket or quote was opened, and
// elsewhere where the parser could not go on.
func (d *Document) syntaxError(dec *yaml.Decoder, data []byte, err error) error {
	m := marksOf(dec)
	e := &Error{File: d.File, Line: m.line, Msg: strings.TrimPrefix(err.Error(), "yaml: "), Hint: "the file is not valid YAML"}
	lines := bytes.Split(data, []byte("\n"))
	at := func(line int) string {
		if line < 1 || line > len(lines) {
			return ""
		}
		return string(lines[line-1])
	}
	if anchor := unknownAnchor.FindStringSubmatch(err.Error()); anchor != nil {
		e.Line = m.event
		e.Msg = fmt.Sprintf("unknown anchor %q", anchor[1])
		e.Hint = fmt.Sprintf("write &%s before the value meant, above; or quote a value that begins with *", anchor[1])
		return e
	}
	if m.unknownLayout {
		e.Line = 0
		return e
	}
	if m.offset > 0 && m.offset <= len(data) {
		e.Line = 1 + bytes.Count(data[:m.offset], []byte("\n"))
		e.Msg, e.Hint = "a byte that is not text: "+m.problem, "save the file as UTF-8, without control characters"
		return e
	}
	e.Msg = m.problem
	rest := []rune(at(m.line))
	rest = rest[min(m.column, len(rest)):]
	text := bytes.TrimRight(data, " \t\r\n")
	last := 1 + bytes.Count(text, []byte("\n"))
	ended := m.line > last || m.line == last && len(rest) == 0
	if open := openQuote(at, m.line, m.column); open > 0 {
		e.Line = open
		e.Msg, e.Hint = fmt.Sprintf("a quote opened here goes on to line %d", m.line), "close it on this line"
		return e
	}
	for _, line := range []int{m.line, m.line - 1} {
		if strings.ContainsRune(at(line), noBreakSpace) {
			e.Line = line
			e.Msg, e.Hint = "a no-break space, U+00A0", noBreakHint
			return e
		}
	}
	switch p := m.problem; {
	case p == "found incompatible YAML document":
		e.Msg, e.Hint = "YAML 1.1 is read, and not the version of this %YAML line", "remove the line"
	case p == "did not find expected node content" && len(rest) > 0 && rest[0] == ',':
		e.Msg, e.Hint = `a "," with nothing before it`, "remove it"
	case p == "did not find expected node content" && ended:
		e.Line = last
		e.Msg, e.Hint = "the file ends where a value is needed", "close what is opened with } or ]"
	case strings.HasPrefix(p, "did not find expected ',' or '"):
		closing := p[len(p)-2 : len(p)-1]
		if m.line > m.began && indent(at(m.line)) <= indent(at(m.began)) || ended {
			e.Line = m.began
			e.Msg, e.Hint = fmt.Sprintf("no %q closes what is opened here", closing), "close it on this line, or indent the lines that belong to it"
			break
		}
		e.Msg, e.Hint = fmt.Sprintf(`"," or %q is missing`, closing), "separate fields with commas; quote a value that holds { } [ ] or ,"
		if strings.Contains(at(m.line), "${") {
			e.Hint = "variables of the environment are not filled in; write a value and set it with --set"
		}
	case len(rest) > 0 && strings.ContainsRune("}]", rest[0]):
		e.Msg, e.Hint = fmt.Sprintf("%q closes nothing", rest[0]), "remove it"
	case p == "did not find expected '-' indicator":
		e.Msg, e.Hint = fmt.Sprintf("this is no item of the list that begins on line %d", m.began), "begin an item with - and a space, indented as the others; indent the fields of an item alike"
	case p == "did not find expected key":
		e.Msg, e.Hint = fmt.Sprintf("this is no field of those that begin on line %d", m.began), "indent it as they are, and write name: value"
	case p == "could not find expected ':'":
		e.Line = m.began
		e.Msg, e.Hint = "this is no field", "write name: value, with a space after the colon"
	case p == "mapping values are not allowed in this context" && dashWithoutSpace.MatchString(at(m.line-1)):
		e.Line--
		e.Msg, e.Hint = "this is no item of a list", "write a space after the -"
	case p == "mapping values are not allowed in this context" && strings.Count(at(m.line), ": ") > 1:
		e.Msg, e.Hint = `a second ":" in one line`, "quote a value that holds a colon; write the fields of a field in { } or on lines of their own"
	case p == "mapping values are not allowed in this context":
		e.Msg, e.Hint = `a ":" where no field can be`, "indent the line as the fields above it, or quote a value that holds a colon"
	case p == "block sequence entries are not allowed in this context":
		e.Msg, e.Hint = `a "-" where no list can be`, "begin the list on a line of its own"
	case strings.Contains(p, "tab character"), len(rest) > 0 && rest[0] == '\t':
		e.Msg, e.Hint = "a tab in the indentation", "indent with spaces"
	case p == "found character that cannot start any token" && len(rest) > 0:
		e.Msg, e.Hint = fmt.Sprintf("a value cannot begin with %q", rest[0]), "put the value in quotes"
	case p == "found unknown escape character":
		e.Msg, e.Hint = "an unknown escape after a backslash", `write \\ for a backslash, or use single quotes`
	case p == "did not find expected alphabetic or numeric character":
		e.Msg, e.Hint = "* or & without a name", "quote a value that begins with * or &"
	case p == "found unexpected end of stream" || p == "found unexpected document indicator":
		e.Line = m.began
		e.Msg, e.Hint = "no quote closes what is opened here", "close it with the same quote"
	}
	return e
}

const (
	noBreakSpace = '\u00a0'
	noBreakHint  = "YAML takes no-break spaces for text: write plain spaces"
)

var dashWithoutSpace = regexp.MustCompile(`^\s*-\w+:`)

var opensQuote = regexp.MustCompile(`(?:^|[:,\[{-])\s*"[^"]*$`)

// openQuote is the line where a value's double quote was opened that only closes on
// the given line, before the column; 0 for none.
func openQuote(at func(int) string, line, column int) int {
	text := []rune(at(line))
	if !strings.Contains(string(text[:min(column, len(text))]), `"`) {
		return 0
	}
	for line--; line > 0; line-- {
		if strings.Contains(at(line), `"`) {
			if opensQuote.MatchString(at(line)) {
				return line
			}
			return 0
		}
	}
	return 0
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
