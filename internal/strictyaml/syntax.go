package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

var unknownAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)

// syntaxError rewords an error of the YAML parser. It also finds the line of the mistake: the line with an unclosed
// bracket or quote, otherwise the line where the parser stopped.
func (d *Document) syntaxError(data []byte, err error) error {
	e := &Error{File: d.File, Msg: strings.TrimPrefix(err.Error(), "yaml: "), Hint: "the file is not valid YAML"}
	var failed *yaml.LoadError
	if !errors.As(err, &failed) {
		return e
	}
	line, column, began := failed.Mark.Line, failed.Mark.Column-1, failed.ContextMark.Line
	e.Line, e.Msg = line, failed.Message
	lines := bytes.Split(data, []byte("\n"))
	at := func(line int) string {
		if line < 1 || line > len(lines) {
			return ""
		}
		return string(lines[line-1])
	}
	if anchor := unknownAnchor.FindStringSubmatch(failed.Message); anchor != nil {
		e.Msg = fmt.Sprintf("unknown anchor %q", anchor[1])
		e.Hint = fmt.Sprintf("define the anchor by writing &%s before an earlier value, or quote a value that begins with *", anchor[1])
		return e
	}
	if failed.Stage == yaml.ReaderStage {
		problem, _, _ := strings.Cut(failed.Message, " (value")
		e.Line = 1 + bytes.Count(data[:min(failed.Mark.Index, len(data))], []byte("\n"))
		e.Msg, e.Hint = "the file contains a byte that is not valid text: "+problem, "save the file as UTF-8, without control characters"
		return e
	}
	rest := []rune(at(line))
	rest = rest[min(column, len(rest)):]
	text := bytes.TrimRight(data, " \t\r\n")
	last := 1 + bytes.Count(text, []byte("\n"))
	ended := line > last || line == last && len(rest) == 0
	if open := openQuote(at, line, column); open > 0 {
		e.Line = open
		e.Msg, e.Hint = fmt.Sprintf("a quote opened here continues to line %d", line), "close it on this line"
		return e
	}
	for _, near := range []int{line, line - 1} {
		if strings.ContainsRune(at(near), noBreakSpace) {
			e.Line = near
			e.Msg, e.Hint = "the line contains a no-break space, U+00A0", noBreakHint
			return e
		}
	}
	switch p := failed.Message; {
	case p == "found incompatible YAML document":
		e.Msg, e.Hint = "the YAML version in this line is not supported; only 1.1 is", "remove the line"
	case p == "did not find expected node content" && len(rest) > 0 && rest[0] == ',':
		e.Msg, e.Hint = `unexpected ","`, "remove it"
	case p == "did not find expected node content" && ended:
		e.Line = last
		e.Msg, e.Hint = "the file ends before a value", "close an open { or ["
	case strings.HasPrefix(p, "did not find expected ',' or '"):
		closing := p[len(p)-2 : len(p)-1]
		if line > began && indent(at(line)) <= indent(at(began)) || ended {
			e.Line = began
			e.Msg, e.Hint = fmt.Sprintf("the bracket opened here has no closing %q", closing), "close it on this line, or indent the lines that belong to it"
			break
		}
		e.Msg, e.Hint = fmt.Sprintf(`"," or %q is missing`, closing), "separate fields with commas; quote a value that contains { } [ ] or ,"
		if strings.Contains(at(line), "${") {
			e.Hint = "environment variables are not expanded; to set a value from outside, use --set"
		}
	case len(rest) > 0 && strings.ContainsRune("}]", rest[0]):
		e.Msg, e.Hint = fmt.Sprintf("unexpected %q", rest[0]), "remove it"
	case p == "did not find expected '-' indicator":
		e.Msg, e.Hint = fmt.Sprintf("expected an item of the list that begins on line %d", began), "begin each item with - and a space; indent all items equally, and all fields of an item equally"
	case p == "did not find expected key":
		e.Msg, e.Hint = fmt.Sprintf("expected a field of the mapping that begins on line %d", began), "write name: value, indented like the other fields"
	case p == "could not find expected ':'":
		e.Line = began
		e.Msg, e.Hint = "expected a field", "write name: value, with a space after the colon"
	case p == "mapping values are not allowed in this context" && dashWithoutSpace.MatchString(at(line-1)):
		e.Line--
		e.Msg, e.Hint = "expected a list item", "write a space after the -"
	case p == "mapping values are not allowed in this context" && strings.Count(at(line), ": ") > 1:
		e.Msg, e.Hint = `unexpected second ":" in this line`, "quote a value that contains a colon; write nested fields in { } or on separate lines"
	case p == "mapping values are not allowed in this context":
		e.Msg, e.Hint = `unexpected ":"`, "indent the line like the fields above it, or quote a value that contains a colon"
	case p == "block sequence entries are not allowed in this context":
		e.Msg, e.Hint = `unexpected "-"`, "begin the list on a separate line"
	case strings.Contains(p, "tab character"), len(rest) > 0 && rest[0] == '\t':
		e.Msg, e.Hint = "the indentation contains a tab", "indent with spaces"
	case p == "found character that cannot start any token" && len(rest) > 0:
		e.Msg, e.Hint = fmt.Sprintf("a value cannot begin with %q", rest[0]), "put the value in quotes"
	case p == "found unknown escape character":
		e.Msg, e.Hint = "unknown escape sequence after a backslash", `write \\ for a backslash, or use single quotes`
	case p == "did not find expected alphabetic or numeric character":
		e.Msg, e.Hint = "expected a name after * or &", "quote a value that begins with * or &"
	case p == "found unexpected end of stream" || p == "found unexpected document indicator":
		e.Line = began
		e.Msg, e.Hint = "the quote opened here is not closed", "close it with the same quote"
	}
	return e
}

const (
	noBreakSpace = '\u00a0'
	noBreakHint  = "use plain spaces, because YAML treats a no-break space as text"
)

var dashWithoutSpace = regexp.MustCompile(`^\s*-\w+:`)

var opensQuote = regexp.MustCompile(`(?:^|[:,\[{-])\s*"[^"]*$`)

// openQuote returns the line of the double quote that opens a value. The value ends at the given line and column. If
// the quote is not on an earlier line, openQuote returns 0.
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
